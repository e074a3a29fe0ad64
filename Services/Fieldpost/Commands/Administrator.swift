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
        AuditRecord.insert(
            [
                (
                    AuditRecord(
                        actor: "cli:\(userName)", action: action, subject: subject, detail: json(detail),
                        address: address), decision
                )
            ], in: environment)
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
