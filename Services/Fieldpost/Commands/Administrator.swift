import Environments
import FoundationEssentials
import Model
import Postgres
import Realms

/// Who uses the command line, for the audit log.
enum Administrator {
    /// The statement that tells of an act, unless the transaction missed its decision.
    static func audit(
        _ action: AuditRecord.Action, _ subject: String, in environment: EnvironmentID?, detail: [String: String] = [:],
        decision: Int32 = -1
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, json(detail)), decision)], in: environment)
    }

    /// The same about an environment that the transaction makes.
    static func audit(
        _ action: AuditRecord.Action, _ subject: String, inNamed name: String, detail: [String: String]
    ) -> Statement {
        AuditRecord.insert([(record(action, subject, json(detail)), -1)], in: nil, named: name)
    }

    /// One record for each of many.
    static func audit(
        _ action: AuditRecord.Action, _ subjects: [String], in environment: EnvironmentID?,
        detail: [String: String] = [:]
    ) -> Statement {
        let detail = json(detail)
        return AuditRecord.insert(subjects.map { record(action, $0, detail) }, in: environment)
    }

    private static func record(_ action: AuditRecord.Action, _ subject: String, _ detail: JSONBytes) -> AuditRecord {
        AuditRecord(actor: "cli:\(userName)", action: action, subject: subject, detail: detail, address: address)
    }

    private static func json(_ detail: [String: String]) -> JSONBytes {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return JSONBytes((try? encoder.encode(detail)).map { Array($0) } ?? Array("{}".utf8))
    }

    private static var userName: String { ProcessInfo.processInfo.userName }

    /// Where the person sits who came over SSH, else this machine.
    private static var address: String {
        let connection = ProcessInfo.processInfo.environment["SSH_CONNECTION"]
        return connection?.split(separator: " ").first.map(String.init) ?? ProcessInfo.processInfo.hostName
    }
}
