import DeviceClient
import FoundationEssentials
import Model
import Synchronization

/// The changes of defects that people make on their devices: each reports one while offline, changes it, and opens it.
struct DefectShift: Sendable {
    /// Maximum number of people.
    static let peopleMax = 12
    /// The resulting history of each defect.
    static let actions = ["Submit", "Modify", "Open"]
    private static let severities = (reported: "2-Major", changed: "1-Critical")
    /// Time offline.
    private static let absence = Duration.milliseconds(500)

    /// The devices, with their people's logins in Compass.
    let people: [(device: Device, login: String)]
    /// The name by which their defects are known.
    let environment: String

    var commandCount: Int { people.count * Self.actions.count }

    func headline(of login: String) -> String { "\(environment): found by \(login)" }

    /// - Parameter onEach: Called after each completed command.
    /// - Returns: The commands that failed, a line each.
    func work(_ onEach: @escaping @Sendable () -> Void) async throws -> [String] {
        try await Device.whileRunning(people.map(\.device)) {
            try await withThrowingTaskGroup(of: [String].self) { group in
                for index in people.indices { group.addTask { try await work(index, onEach) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }
    }

    private func work(_ index: Int, _ onEach: @Sendable () -> Void) async throws -> [String] {
        let (device, login) = people[index]
        if let trouble = try await logIn(device, login) { return [trouble] }
        var record: String?
        for action in Self.actions {
            let wish = wish(action, on: record, of: index)
            let id = StableID.uuid("defect-command", "\(environment) \(login) \(action)")
            let (status, messages, made) = try await carry(wish, id, by: device)
            guard status == .done else {
                return ["\(login): \(action) is \(status.rawValue): \(messages.joined(separator: "; "))"]
            }
            record = record ?? made
            onEach()
        }
        return []
    }

    /// The fields of a `DefectCommand` that a person writes.
    private struct Wish: Encodable {
        let operation: DefectCommand.Operation
        var record: String?
        var actionName: String?
        var fields: [String: String] = [:]
        var base: [String: String] = [:]
        let submitRequested = true
    }

    private func wish(_ action: String, on record: String?, of index: Int) -> Wish {
        let login = people[index].login
        switch action {
        case "Submit":
            return Wish(
                operation: .create,
                fields: [
                    "Headline": headline(of: login), "Owner": people[(index + 1) % people.count].login,
                    "Severity": Self.severities.reported, "Priority": "3-Normal Queue",
                    "Project": DefectPlan.project, "Component": DefectPlan.components[0],
                ])
        case "Modify":
            return Wish(
                operation: .modify, record: record, fields: ["Severity": Self.severities.changed],
                base: ["Severity": Self.severities.reported])
        default:
            return Wish(operation: .changeState, record: record, actionName: action)
        }
    }

    /// - Returns: The reason if the login is refused.
    private func logIn(_ device: Device, _ login: String) async throws -> String? {
        let realm = device.realm
        @Sendable func account(_ state: DeviceState) -> DefectAccount? {
            state.copy.contents[realm]?.first { $0.key.kind == .defectAccount }.flatMap {
                try? JSONDecoder().decode(DefectAccount.self, from: Data($0.value.fields))
            }
        }
        let isStored = Mutex(false)
        try await device.until { state in
            isStored.withLock { $0 = account(state) != nil }
            return state.copy.contents[realm] != nil
        }
        if !isStored.withLock({ $0 }) { try await device.storeCompassLogin(login, password: DemoLogin.password) }
        let refusal = Mutex<String?>(nil)
        try await device.until { state in
            guard let account = account(state), account.status != .unchecked else { return false }
            if account.status == .refused { refusal.withLock { $0 = account.reason ?? "refused" } }
            return true
        }
        return refusal.withLock { $0 }.map { "\(login): the login is refused: \($0)" }
    }

    /// Enqueues a command while the device is offline, and waits for its result. A command of an earlier run is not
    /// repeated.
    private func carry(
        _ wish: Wish, _ id: UUID, by device: Device
    ) async throws -> (DefectCommand.Status, [String], record: String?) {
        let (realm, object) = (device.realm, ObjectID(kind: .defectCommand, id: id))
        if await device.copy[realm, object] == nil {
            let comesBack = await device.leave(for: Self.absence)
            let fields = Array(try JSONEncoder().encode(wish))
            try await device.enqueue([Mutation(operation: .put, kind: .defectCommand, id: id, fields: fields)])
            try await comesBack.value
            try await device.until { $0.queue.count == 0 }
            for answer in await device.takeUpdates().answers {
                guard case .rejected(let code, let detail) = answer.outcome else { continue }
                return (.refused, ["\(code): \(detail)"], nil)
            }
        }
        let last = Mutex<DefectCommand?>(nil)
        try await device.until { state in
            let held = state.copy[realm, object].flatMap {
                try? JSONDecoder().decode(DefectCommand.self, from: Data($0.fields))
            }
            guard let held, held.status != .waiting else { return false }
            last.withLock { $0 = held }
            return true
        }
        let ended = last.withLock { $0 }
        return (ended?.status ?? .waiting, ended?.messages ?? [], ended?.record)
    }
}
