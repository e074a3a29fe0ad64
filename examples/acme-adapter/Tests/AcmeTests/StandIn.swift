import BackendContract

@testable import Acme

/// Acme as its documentation says: a task must exist, what is approved is final, an employee has rows of their own.
actor StandIn {
    private let tasks = [AcmeTask(number: 17, name: "roof"), AcmeTask(number: 23, name: "cellar")]
    private var rows: [AcmeRow] = []
    private var behaviour = BackendBehaviour.normal

    func behave(_ behaviour: BackendBehaviour) { self.behaviour = behaviour }

    func approve(_ number: Int?) {
        for index in rows.indices where rows[index].number == number { rows[index].isApproved = true }
    }

    func answer(_ call: AcmeCall, token: String) async throws -> AcmeAnswer {
        guard token == "right" else { return AcmeAnswer(status: 401, text: "wrong token") }
        switch behaviour {
        case .normal: break
        case .failing: return AcmeAnswer(status: 500, text: "broken")
        case .overloaded(let wait):
            return AcmeAnswer(status: 429, text: "busy", retryAfter: Int(wait.components.seconds))
        case .stuck: try await Task.sleep(for: .seconds(30))
        case .failingAfterWrite where call.isWrite:
            _ = perform(call)
            return AcmeAnswer(status: 500, text: "broken")
        case .losingAnswers where call.isWrite:
            _ = perform(call)
            throw CancellationError()
        case .failingAfterWrite, .losingAnswers: break
        }
        return perform(call)
    }

    private func perform(_ call: AcmeCall) -> AcmeAnswer {
        switch call {
        case .tasks: return AcmeAnswer(tasks: tasks)
        case .rows(let employee): return AcmeAnswer(rows: rows.filter { $0.employee == employee })
        case .remove(let number, let employee):
            guard let index = openRow(number, of: employee) else { return .noSuchRow }
            rows.remove(at: index)
            return AcmeAnswer()
        case .save(let row):
            guard tasks.contains(where: { $0.number == row.task }) else {
                return AcmeAnswer(status: 400, text: "there is no task \(row.task)")
            }
            return row.number == 0 ? append(row) : replace(row)
        }
    }

    private func append(_ row: AcmeRow) -> AcmeAnswer {
        var row = row
        row.number = (rows.map(\.number).max() ?? 0) + 1
        rows.append(row)
        return AcmeAnswer(rows: [row])
    }

    private func replace(_ row: AcmeRow) -> AcmeAnswer {
        guard let index = openRow(row.number, of: row.employee) else { return .noSuchRow }
        rows[index] = row
        return AcmeAnswer(rows: [row])
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

extension AcmeAnswer {
    fileprivate static let noSuchRow = AcmeAnswer(status: 400, text: "there is no such row, or it is approved")
}
