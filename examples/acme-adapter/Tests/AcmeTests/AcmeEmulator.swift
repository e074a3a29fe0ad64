import BackendContract

@testable import Acme

/// An emulator of Acme, written from its documentation: tasks must exist, approved rows are final, and employees access
/// only their own rows.
actor AcmeEmulator {
    private let tasks = [AcmeTask(number: 17, name: "roof"), AcmeTask(number: 23, name: "cellar")]
    private var rows: [AcmeRow] = []
    private var behaviour = BackendBehaviour.normal

    func behave(_ behaviour: BackendBehaviour) { self.behaviour = behaviour }

    func approve(_ number: Int?) {
        for index in rows.indices where rows[index].number == number { rows[index].isApproved = true }
    }

    func respond(to call: AcmeCall, token: String) async throws -> AcmeResponse {
        guard token == "right" else { return AcmeResponse(status: 401, text: "wrong token") }
        switch behaviour {
        case .normal: break
        case .failing: return AcmeResponse(status: 500, text: "broken")
        case .overloaded(let wait):
            return AcmeResponse(status: 429, text: "busy", retryAfter: Int(wait.components.seconds))
        case .stuck: try await Task.sleep(for: .seconds(30))
        case .failingAfterWrite where call.isWrite:
            _ = perform(call)
            return AcmeResponse(status: 500, text: "broken")
        case .losingResponses where call.isWrite:
            _ = perform(call)
            throw CancellationError()
        case .failingAfterWrite, .losingResponses: break
        }
        return perform(call)
    }

    private func perform(_ call: AcmeCall) -> AcmeResponse {
        switch call {
        case .tasks: return AcmeResponse(tasks: tasks)
        case .rows(let employee): return AcmeResponse(rows: rows.filter { $0.employee == employee })
        case .remove(let number, let employee):
            guard let index = openRow(number, of: employee) else { return .noSuchRow }
            rows.remove(at: index)
            return AcmeResponse()
        case .save(let row):
            guard tasks.contains(where: { $0.number == row.task }) else {
                return AcmeResponse(status: 400, text: "there is no task \(row.task)")
            }
            return row.number == 0 ? append(row) : replace(row)
        }
    }

    private func append(_ row: AcmeRow) -> AcmeResponse {
        var row = row
        row.number = (rows.map(\.number).max() ?? 0) + 1
        rows.append(row)
        return AcmeResponse(rows: [row])
    }

    private func replace(_ row: AcmeRow) -> AcmeResponse {
        guard let index = openRow(row.number, of: row.employee) else { return .noSuchRow }
        rows[index] = row
        return AcmeResponse(rows: [row])
    }

    private func openRow(_ number: Int, of employee: String) -> Int? {
        rows.firstIndex { $0.number == number && $0.employee == employee && !$0.isApproved }
    }
}

extension AcmeCall {
    fileprivate var isWrite: Bool {
        switch self {
        case .save, .remove: true
        case .tasks, .rows: false
        }
    }
}

extension AcmeResponse {
    fileprivate static let noSuchRow = AcmeResponse(status: 400, text: "there is no such row, or it is approved")
}
