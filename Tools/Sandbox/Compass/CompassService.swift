/// A stand-in for HCL Compass's REST API, written from the vendor's pages and the requests of its sample apps.
struct CompassService: Sendable {
    struct Configuration: Sendable {
        var host = "127.0.0.1"
        /// 0 takes a free one.
        var port = 0
        var repository = "CCMRepo"
        var database = "SAMPL"
        /// Where what was committed survives a restart; nil keeps it in memory only.
        var statePath: String?
    }

    let system: CompassSystem
    private let configuration: Configuration

    init(_ configuration: Configuration) throws {
        self.configuration = configuration
        system = try CompassSystem(journalPath: configuration.statePath)
    }

    /// Serves until the task is cancelled or the process is told to stop.
    ///
    /// - Parameter onRunning: Called with the port once requests are answered.
    func run(onRunning: @escaping @Sendable (Int) async -> Void = { _ in }) async throws {
        let responder = CompassResponder(
            system: system, repository: configuration.repository, database: configuration.database)
        try await SandboxServer(responder: responder, host: configuration.host, port: configuration.port)
            .run(onRunning: onRunning)
    }
}
