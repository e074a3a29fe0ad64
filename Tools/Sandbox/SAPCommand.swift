import ArgumentParser

/// `sandbox sap`: the SAP stand-in alone.
struct SAPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sap", abstract: "A stand-in for SAP S/4HANA: time sheets, projects, business partners.")

    @Option(help: "The address to listen on.") var host = "127.0.0.1"
    @Option(help: "The port to listen on; 0 takes a free one.") var port = 8200
    @Option(help: "The user that is let in.") var user = "FIELDPOST"
    @Option(help: "The user's password.") var password = "sandbox"
    @Option(help: "A file that keeps what was recorded over a restart; without it, it is forgotten.") var state: String?

    func run() async throws {
        let service = try SAPService(
            SAPService.Configuration(host: host, port: port, user: user, password: password, statePath: state))
        try await service.run { print("sandbox sap listens on \(host):\($0)") }
    }
}
