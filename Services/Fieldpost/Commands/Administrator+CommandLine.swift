import Audit
import FoundationEssentials

extension Administrator {
    /// The operating system's user that runs the command.
    static let commandLine = Administrator(actor: "cli:\(ProcessInfo.processInfo.userName)", address: here)

    /// The address of the SSH client, otherwise this machine's name.
    private static var here: String {
        let connection = ProcessInfo.processInfo.environment["SSH_CONNECTION"]
        return connection?.split(separator: " ").first.map(String.init) ?? ProcessInfo.processInfo.hostName
    }
}
