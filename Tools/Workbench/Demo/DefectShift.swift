import DeviceClient
import FoundationEssentials
import Model

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
            try await concurrentMap(Array(people.indices)) { try await work($0, onEach) }.flatMap(\.self)
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
            state.copy.contents[realm]?.first { $0.key.kind == .defectAccount }?.value.decoded(as: DefectAccount.self)
        }
        let isStored = try await device.value { state -> Bool? in
            state.copy.contents[realm] == nil ? nil : account(state) != nil
        }
        if !isStored { try await device.storeCompassLogin(login, password: DemoLogin.password) }
        let checked = try await device.value { state -> DefectAccount? in
            account(state).flatMap { $0.status == .unchecked ? nil : $0 }
        }
        return checked.status == .refused ? "\(login): the login is refused: \(checked.reason ?? "refused")" : nil
    }

    /// Enqueues a command while the device is offline, and waits for its result. A command of an earlier run is not
    /// repeated.
    private func carry(
        _ wish: Wish, _ id: UUID, by device: Device
    ) async throws -> (DefectCommand.Status, [String], record: String?) {
        let (realm, object) = (device.realm, ObjectID(kind: .defectCommand, id: id))
        if await device.copy[realm, object] == nil {
            let reconnection = await device.leave(for: Self.absence)
            let fields = Array(try JSONEncoder().encode(wish))
            try await device.enqueue([Mutation(operation: .put, kind: .defectCommand, id: id, fields: fields)])
            try await reconnection.value
            try await device.until { $0.queue.count == 0 }
            for answer in await device.takeUpdates().answers {
                guard case .rejected(let code, let detail) = answer.outcome else { continue }
                return (.refused, ["\(code): \(detail)"], nil)
            }
        }
        let ended = try await device.value { state -> DefectCommand? in
            state.copy[realm, object]?.decoded(as: DefectCommand.self).flatMap { $0.status == .waiting ? nil : $0 }
        }
        return (ended.status, ended.messages, ended.record)
    }
}
