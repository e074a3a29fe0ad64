import Audit
import FoundationEssentials

extension Administrator {
    /// Who uses the command line.
    static let commandLine = Administrator(actor: "cli:\(ProcessInfo.processInfo.userName)", address: here)

    /// Where the person sits who came over SSH, else this machine.
    private static var here: String {
        let connection = ProcessInfo.processInfo.environment["SSH_CONNECTION"]
        return connection?.split(separator: " ").first.map(String.init) ?? ProcessInfo.processInfo.hostName
    }
}
