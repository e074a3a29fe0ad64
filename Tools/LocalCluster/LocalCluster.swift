import Foundation
import HTTPClient
import Model

/// A Fieldpost installation of real processes: PostgreSQL, the emulators and the services.
///
/// Each part can be killed and restarted at the same address. PostgreSQL and back ends keep their data; the broker is
/// empty after a restart. All parts end with `stop`, or with this process.
package final class LocalCluster: Sendable {
    package struct Options: Sendable {
        /// The services to run.
        package var services = Part.ofTheDemo
        /// Further instances, which have ports and are started later.
        package var idle: [Part] = []
        /// The folder of the executables that are run.
        package var executables = LocalCluster.executables
        /// The schema files that the database is made of.
        package var schemaFolder = LocalCluster.schemaFolder
        /// Services that run as `deploy/up` shows them: onboarding serves the app and the device page, and the gateway
        /// accepts requests of the app.
        package var showcases: [Part] = []
        /// The emulators to run. With the broker alone, the environments use the others of another cluster.
        package var emulators: [Part] = [.broker, .identity, .sap]
        /// `FIELDPOST_SECRET_KEYS`, if they differ from other clusters'.
        package var secretKeys: String?
        /// Whether lag-monitor, where it runs, has the operators' console.
        package var hasConsole = false
        /// Additional environment variables per service.
        package var variables: [Part: [String: String]] = [:]
        /// Additional arguments per emulator.
        package var arguments: [Part: [String]] = [:]
        /// Whether the database has a standby, to which services connect once it is promoted.
        package var hasStandby = false
        /// PostgreSQL's settings.
        package var database: [String: String] = [:]

        package init() {}

        /// Short timeouts for tests: a lost worker is detected within seconds, a call times out after 2 s, and unknown
        /// outcomes are resolved 2 s later.
        package static var quick: Options {
            var options = Options()
            for service in Services.all where !service.topics.isEmpty {
                options.variables[Part(service), default: [:]].merge([
                    "FIELDPOST_KAFKA_SESSION_TIMEOUT_MS": "6000", "FIELDPOST_KAFKA_HEARTBEAT_INTERVAL_MS": "1000",
                ]) { $1 }
            }
            for service in Services.needing(.backEnds) {
                options.variables[Part(service), default: [:]]["FIELDPOST_BACKEND_CALL_MAX"] = "2s"
            }
            options.variables[.submitter, default: [:]].merge([
                "FIELDPOST_SUBMITTER_SETTLE_MIN": "2s", "FIELDPOST_SUBMITTER_RETRY_MAX": "2s",
            ]) { $1 }
            options.variables[.defectSubmitter, default: [:]].merge([
                "FIELDPOST_DEFECTS_SETTLE_MIN": "2s", "FIELDPOST_DEFECTS_RETRY_MAX": "2s",
            ]) { $1 }
            return options
        }
    }

    /// The folder, the ports and the secrets.
    package let home: ClusterHome
    package var folder: ClusterFolder { home.folder }
    /// A libpq connection string of the cluster's database.
    package let conninfo: String
    package var brokers: String { home.address(.broker) }
    package var gatewayURL: String { home.url(.gateway) }
    package var identityURL: String { home.url(.identity) }
    package var sapURL: String { home.url(.sap) }
    package var economicURL: String { home.url(.economic) }
    package var compassURL: String { home.url(.compass) }
    package var onboardingURL: String { home.url(.onboarding) }
    package var consoleURL: String { home.consoleURL }
    /// The variable with the password of SAP's user `FIELDPOST`.
    package static let passwordVariable = "SANDBOX_SAP_PASSWORD"
    package static let passwordOfSAP = "sandbox"
    /// The variable with e-conomic's tokens.
    package static let tokensVariable = "SANDBOX_ECONOMIC_TOKENS"
    package static let tokensOfEconomic = "sandbox-app:sandbox-grant"
    /// The identity provider's OAuth client.
    package static let clientID = "fieldpost"
    package static let clientSecret = "sandbox-secret"
    /// The console's client at the same provider, and its administrator.
    package static let consoleClientID = "fieldpost-console"
    package static let consoleAdministrator = "operator@fieldpost.example"
    /// The variable with the client's secret.
    package static let clientSecretVariable = "SANDBOX_CLIENT_SECRET"

    /// `nil`: the database is on hosts of its own.
    let server: ClusterServer?
    /// The database's standby.
    package let standby: ClusterServer?
    let client = Client()
    let options: Options
    package var services: [Part] { options.services }
    /// Its processes, without the database unless `superviseDatabase` was called.
    package let supervisor = Supervisor()

    /// Creates and starts all parts; returns when every service is ready.
    package convenience init(_ name: String, _ options: Options = .quick) async throws {
        var made = try ClusterHome(temporary: name, services: options.services + options.idle)
        if let keys = options.secretKeys { made.secretKeys = keys }
        let home = made
        let (server, standby, conninfo) = try await onOwnThread { () -> (ClusterServer, ClusterServer?, String) in
            let server = try ClusterServer(in: home.folder, options: options.database)
            try server.start()
            let conninfo = try server.makeDatabase("fieldpost")
            guard options.hasStandby else { return (server, nil, conninfo) }
            let standby = try server.makeStandby()
            return (server, standby, server.conninfo("fieldpost", or: standby))
        }
        self.init(home, server, standby: standby, conninfo: conninfo, options)
        try await runCommand(["migrate", "--schema", options.schemaFolder])
        try await startAll(options.emulators + options.services)
    }

    /// A cluster whose database runs.
    package init(
        _ home: ClusterHome, _ server: ClusterServer?, standby: ClusterServer? = nil, conninfo: String,
        _ options: Options
    ) {
        self.home = home
        self.server = server
        self.standby = standby
        self.conninfo = conninfo
        self.options = options
    }

    /// Starts parts, and waits until each is ready.
    package func startAll(_ parts: [Part]) async throws {
        for part in parts { try start(part) }
        for part in parts { try await waitUntilReady(part) }
    }

    /// Supervises the database like all other parts.
    package func superviseDatabase() throws {
        guard let server, let process = server.running else { throw ClusterFailure("the database does not run") }
        // SIGINT is its fast shutdown.
        supervisor.adopt(Part.database.name, process, stopSignal: SIGINT) { try server.launch() }
    }

    deinit { end() }

    /// Kills all processes, and removes the cluster's files.
    package func stop() async {
        await onOwnThread { [self] in end() }
        client.shutDown()
    }

    private func end() {
        supervisor.kill9()
        server?.kill9()
        standby?.kill9()
        folder.remove()
    }

    // MARK: Parts

    /// Starts a part that does not run.
    ///
    /// - Parameter executables: The folder of its build; the cluster's unless given.
    package func start(_ part: Part, of executables: String? = nil) throws {
        if part == .database {
            try server?.start()
            return
        }
        let (folder, command) = (folder, command(part, of: executables ?? options.executables))
        try supervisor.start(part.name) { try folder.start(command, name: part.name) }
    }

    /// Kills a part with signal 9: its process group or, for PostgreSQL, every process of the server.
    package func kill9(_ part: Part) async {
        await onOwnThread { [self] in
            if part == .database, let server {
                server.kill9()
            } else {
                process(part)?.kill9()
            }
        }
    }

    /// Kills a part and restarts it at once, without waiting until it is ready; the broker is empty afterwards.
    package func restart(_ part: Part) async throws {
        await kill9(part)
        try await onOwnThread { [self] in try start(part) }
        if part == .broker { try await waitUntilReady(.broker) }
    }

    /// Suspends a part until `thaw`, like a suspended machine.
    package func freeze(_ part: Part) { signal(part, SIGSTOP) }

    package func thaw(_ part: Part) { signal(part, SIGCONT) }

    private func signal(_ part: Part, _ number: Int32) {
        if part == .database, let server { server.signal(number) } else { process(part)?.signal(number) }
    }

    /// Stops all parts in the reverse order of their start.
    ///
    /// - Parameter killed: Called with the name of each part that did not end within `each`.
    package func stopInOrder(each: Duration, killed: @escaping @Sendable (String) -> Void) async {
        await onOwnThread { [self] in supervisor.stop(each: each, killed: killed) }
        await stop()
    }

    /// Sends SIGTERM to a service, and waits.
    ///
    /// - Returns: `nil` if it still runs after `within`.
    package func terminate(_ part: Part, within: Duration) async -> ClusterProcess.End? {
        await onOwnThread { [self] in process(part)?.terminate(within: within) }
    }

    package func process(_ part: Part) -> ClusterProcess? {
        part == .database ? server?.running : supervisor.process(part.name)
    }

    // MARK: Readiness

    /// Waits until a part is ready.
    package func waitUntilReady(_ part: Part, within: Duration = .seconds(240)) async throws {
        let deadline = ContinuousClock.now + within
        while await !isReady(part) {
            if part != .database, let end = process(part)?.end {
                throw ClusterFailure("\(part.name) ended (\(end)): \(process(part)?.logTail() ?? "")")
            }
            guard .now < deadline else {
                throw ClusterFailure("\(part.name) is not ready after \(within): \(process(part)?.logTail() ?? "")")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func isReady(_ part: Part) async -> Bool {
        if part == .database { return true }  // `start` has waited for it
        let isAnswered =
            switch part {
            case .broker: Ports.isListening(home.ports[.broker] ?? 0, on: home.host(.broker))
            case .identity: await answers(identityURL + "/.well-known/openid-configuration")
            case .sap, .economic, .compass: await answers(home.url(part) + "/sandbox/stats")
            default: await answers(adminURL(part) + "/health/ready")
            }
        // A process of another installation may respond on the same port.
        guard isAnswered, let process = process(part) else { return false }
        let port = part.service == nil ? home.ports[part] : home.adminPorts[part]
        return Ports.isListening(port ?? 0, by: process.id)
    }

    /// The address of a service's metrics and health.
    package func adminURL(_ part: Part) -> String { "http://\(home.host(part)):\(home.adminPorts[part] ?? 0)" }

    private func answers(_ url: String) async -> Bool {
        let response = try? await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
        return response?.status == 200
    }
}
