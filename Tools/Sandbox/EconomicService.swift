/// A stand-in for e-conomic's Projects API v20, written from the vendor's OpenAPI document
/// (https://apis.e-conomic.com, v20.0.0) and its list of error codes.
struct EconomicService: Sendable {
    struct Configuration: Sendable {
        var host = "127.0.0.1"
        /// 0 takes a free one.
        var port = 0
        var appSecretToken = "sandbox-app"
        var agreementGrantToken = "sandbox-grant"
        /// Where what was acknowledged survives a restart; nil keeps it in memory only.
        var statePath: String?
    }

    let system: EconomicSystem
    private let configuration: Configuration

    init(_ configuration: Configuration) throws {
        self.configuration = configuration
        system = try EconomicSystem(journalPath: configuration.statePath)
    }

    /// Serves until the task is cancelled or the process is told to stop.
    ///
    /// - Parameter onRunning: Called with the port once requests are answered.
    func run(onRunning: @escaping @Sendable (Int) async -> Void = { _ in }) async throws {
        let responder = EconomicResponder(
            system: system, tokens: (configuration.appSecretToken, configuration.agreementGrantToken))
        try await SandboxServer(
            responder: responder, host: configuration.host, port: configuration.port,
            handlers: { [system] in [SandboxDate { system.switches.dateSkewSeconds }] }
        ).run(onRunning: onRunning)
    }
}
