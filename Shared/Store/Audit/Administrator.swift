import FoundationEssentials
package import Model
package import Postgres

/// The operator who acts on an installation, for the audit log.
package struct Administrator: Sendable {
    /// The access path and account, such as `cli:root` or `console:ana@example.com`.
    package let actor: String
    /// The operator's network address or host name.
    let address: String

    package init(actor: String, address: String) {
        (self.actor, self.address) = (actor, address)
    }

    /// Returns the statement that records an act, unless the transaction missed its decision.
    package func audit(
        _ action: AuditRecord.Action, _ subject: String, in environment: EnvironmentID?, detail: [String: String] = [:],
        decision: Int32 = -1
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, Self.json(detail)), decision)], in: environment)
    }

    /// Returns the statement that records an act on an environment that the same transaction creates.
    package func audit(
        _ action: AuditRecord.Action, _ subject: String, inNamed name: String, detail: [String: String]
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, Self.json(detail)), -1)], in: nil, named: name)
    }

    /// Returns the statement that records one act for each subject.
    package func audit(
        _ action: AuditRecord.Action, _ subjects: [String], in environment: EnvironmentID?,
        detail: [String: String] = [:]
    ) -> Statement {
        let detail = Self.json(detail)
        return AuditRecord.insert(subjects.map { record(action, $0, detail) }, in: environment)
    }

    /// Returns the statement that records one act for each subject, with individual details.
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
