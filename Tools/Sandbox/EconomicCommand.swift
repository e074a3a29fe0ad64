import ArgumentParser

/// `sandbox economic`: the e-conomic stand-in alone.
struct EconomicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "economic", abstract: "A stand-in for e-conomic: time entries, projects, activities.")

    @Option(help: "The address to listen on.") var host = "127.0.0.1"
    @Option(help: "The port to listen on; 0 takes a free one.") var port = 8201
    @Option(help: "The X-AppSecretToken that is let in.") var appSecretToken = "sandbox-app"
    @Option(help: "The X-AgreementGrantToken that is let in.") var agreementGrantToken = "sandbox-grant"
    @Option(help: "A file that keeps what was recorded over a restart; without it, it is forgotten.") var state: String?

    func run() async throws {
        let service = try EconomicService(
            EconomicService.Configuration(
                host: host, port: port, appSecretToken: appSecretToken, agreementGrantToken: agreementGrantToken,
                statePath: state))
        try await service.run { print("sandbox economic listens on \(host):\($0)") }
    }
}
