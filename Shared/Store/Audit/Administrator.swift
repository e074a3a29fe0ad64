import FoundationEssentials
package import Model
package import Postgres

/// Who acts on an installation, for the audit log.
package struct Administrator: Sendable {
    /// How they came and who they are, such as `cli:root` or `console:ana@example.com`.
    let actor: String
    /// Where they are: an address or a host's name.
    let address: String

    package init(actor: String, address: String) {
        (self.actor, self.address) = (actor, address)
    }

    /// The statement that tells of an act, unless the transaction missed its decision.
    package func audit(
        _ action: AuditRecord.Action, _ subject: String, in environment: EnvironmentID?, detail: [String: String] = [:],
        decision: Int32 = -1
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, Self.json(detail)), decision)], in: environment)
    }

    /// The same about an environment that the transaction makes.
    package func audit(
        _ action: AuditRecord.Action, _ subject: String, inNamed name: String, detail: [String: String]
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, Self.json(detail)), -1)], in: nil, named: name)
    }

    /// One record for each of many.
    package func audit(
        _ action: AuditRecord.Action, _ subjects: [String], in environment: EnvironmentID?,
        detail: [String: String] = [:]
    ) -> Statement {
        let detail = Self.json(detail)
        return AuditRecord.insert(subjects.map { record(action, $0, detail) }, in: environment)
    }

    /// One record for each of many, with a detail of its own.
    package func audit(
        _ action: AuditRecord.Action, _ subjects: [(subject: String, detail: [String: String])],
        in environment: EnvironmentID?
    ) -> Statement {
        AuditRecord.insert(subjects.map { record(action, $0.subject, Self.json($0.detail)) }, in: environment)
    }

    private func record(_ action: AuditRecord.Action, _ subject: String, _ detail: JSONBytes) -> AuditRecord {
        AuditRecord(actor: actor, action: action, subject: subject, detail: detail, address: address)
    }

    private static func json(_ detail: [String: String]) -> JSONBytes {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return JSONBytes((try? encoder.encode(detail)).map { Array($0) } ?? Array("{}".utf8))
    }
}
