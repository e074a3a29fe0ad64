import Foundation
import HTTPClient
import Model

/// A whole Fieldpost of real processes: PostgreSQL, the sandbox's broker, identity provider and SAP, and the services.
///
/// Each part can be killed and started again at the same address: PostgreSQL and back ends keep what they had, the
/// broker comes back empty. Everything ends with `stop`, or when this process does, however it ends.
package final class LocalCluster: Sendable {
    package struct Options: Sendable {
        /// The services to run.
        package var services = Part.ofTheDemo
        /// Instances that have their place, and are started later.
        package var idle: [Part] = []
        /// The folder of the executables that are run.
        package var executables = LocalCluster.executables
        /// The schema files that the database is made of.
        package var schemaFolder = LocalCluster.schemaFolder
        /// Services that run as `deploy/up` shows them; onboarding then serves the page on which a person is a device.
        package var showcases: [Part] = []
        /// Whether it has an identity provider and back ends of its own; else the sandbox's broker alone runs, and its
        /// environments have those of another cluster.
        package var hasOthers = true
        /// `FIELDPOST_SECRET_KEYS`, when they are to be other ones than all clusters have.
        package var secretKeys: String?
        /// Whether the sandbox's e-conomic runs beside its SAP.
        package var hasEconomic = false
        /// Whether the sandbox's Compass runs.
        package var hasCompass = false
        /// Whether lag-monitor, where it runs, has the operators' console.
        package var hasConsole = false
        /// Environment variables per service, beside those that make up the cluster.
        package var variables: [Part: [String: String]] = [:]
        /// Arguments per stand-in, beside those that make up the cluster.
        package var arguments: [Part: [String]] = [:]
        /// Whether the database has a standby, which services find by themselves once it is promoted.
        package var hasStandby = false
        /// PostgreSQL's settings.
        package var database: [String: String] = [:]

        package init() {}

        /// Short waits: a lost worker is noticed in seconds, a call ends within two, and what became of it is asked two
        /// seconds later. For tests; a real back end may commit later than that.
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

    /// Where it is.
    package let home: ClusterHome
    package var folder: ClusterFolder { home.folder }
    /// A libpq connection string of the cluster's database.
    package let conninfo: String
    package var brokers: String { home.address(.broker) }
    /// Environment variables for a Kafka client of the emulator.
    ///
    /// A broker of librdkafka's mock cluster answers a fetch that finds nothing at the end of `fetch.wait.max.ms` only;
    /// a real one answers at the first byte, so that the usual 500 ms delay nothing there.
    package static let emulatorSettings = ["FIELDPOST_KAFKA_FETCH_WAIT_MAX_MS": "10"]
    var kafkaSettings: [String: String] { Self.emulatorSettings.merging(["FIELDPOST_KAFKA_BROKERS": brokers]) { $1 } }
    package var gatewayURL: String { home.url(.gateway) }
    package var identityURL: String { home.url(.identity) }
    package var sapURL: String { home.url(.sap) }
    package var economicURL: String { home.url(.economic) }
    package var compassURL: String { home.url(.compass) }
    package var onboardingURL: String { home.url(.onboarding) }
    package var consoleURL: String { home.consoleURL }
    /// The variable under which services find the password of SAP's user `FIELDPOST`.
    package static let passwordVariable = "SANDBOX_SAP_PASSWORD"
    package static let passwordOfSAP = "sandbox"
    /// The variable under which services find e-conomic's tokens.
    package static let tokensVariable = "SANDBOX_ECONOMIC_TOKENS"
    package static let tokensOfEconomic = "sandbox-app:sandbox-grant"
    /// The OAuth client that the identity provider knows, with its secret.
    package static let clientID = "fieldpost"
    package static let clientSecret = "sandbox-secret"
    /// The client that the console is at the same provider, and who is its administrator.
    package static let consoleClientID = "fieldpost-console"
    package static let consoleAdministrator = "operator@fieldpost.example"
    /// The variable of `fieldpost` that holds the secret.
    package static let clientSecretVariable = "SANDBOX_CLIENT_SECRET"

    let server: ClusterServer
    /// The database's standby.
    package let standby: ClusterServer?
    let client = Client()
    let options: Options
    /// Its processes, without the database of one that ends as a crash would.
    package let supervisor = Supervisor()

    /// Makes everything and starts it; returns when every service is ready.
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
        let standIns = Part.standIns.filter { part in
            switch part {
            case .broker: true
            case .economic: options.hasEconomic
            case .compass: options.hasCompass
            default: options.hasOthers
            }
        }
        try await startAll(standIns + options.services)
    }

    /// A cluster of which only the database runs so far.
    package init(
        _ home: ClusterHome, _ server: ClusterServer, standby: ClusterServer? = nil, conninfo: String,
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

    /// Has the database be started again and stopped in order like all other parts.
    package func superviseDatabase() throws {
        guard let process = server.running else { throw ClusterFailure("the database does not run") }
        let server = server
        // SIGINT is its fast shutdown.
        supervisor.adopt(
            Supervisor.Member(Part.database.name, stopSignal: SIGINT) { try server.launch() }, process)
    }

    deinit { end() }

    /// Ends everything as a crash would, and removes what it kept.
    package func stop() async {
        await onOwnThread { [self] in end() }
        client.shutDown()
    }

    private func end() {
        supervisor.kill9()
        server.kill9()
        standby?.kill9()
        folder.remove()
    }

    // MARK: Parts

    /// Starts a part that does not run.
    ///
    /// - Parameter executables: The folder of the build it is of; the cluster's unless given.
    package func start(_ part: Part, of executables: String? = nil) throws {
        if part == .database { return try server.start() }
        let (folder, command) = (folder, command(part, of: executables ?? options.executables))
        try supervisor.start(Supervisor.Member(part.name) { try folder.start(command, name: part.name) })
    }

    /// Kills a part with signal 9; its process group and, for PostgreSQL, every process of the server.
    package func kill9(_ part: Part) async {
        await onOwnThread { [self] in
            if part == .database { server.kill9() } else { process(part)?.kill9() }
        }
    }

    /// Kills a part and starts it again at once; the broker comes back empty. Does not wait until it is ready.
    package func restart(_ part: Part) async throws {
        await kill9(part)
        try await onOwnThread { [self] in try start(part) }
        if part == .broker { try await waitUntilReady(.broker) }
    }

    /// Stops a part where it is, as a machine does that is suspended, until `thaw`.
    package func freeze(_ part: Part) { signal(part, SIGSTOP) }

    package func thaw(_ part: Part) { signal(part, SIGCONT) }

    private func signal(_ part: Part, _ number: Int32) {
        if part == .database { server.signal(number) } else { process(part)?.signal(number) }
    }

    /// Stops everything in the opposite order of its start, each part in a bound.
    ///
    /// - Parameter killed: Is told the name of each that did not end in `each`.
    package func stopInOrder(each: Duration, killed: @escaping @Sendable (String) -> Void) async {
        await onOwnThread { [self] in
            supervisor.stop(each: each, killed: killed)
            end()
        }
        client.shutDown()
    }

    /// Asks a service to stop, and waits.
    ///
    /// - Returns: How it ended; `nil` when it still runs after `within`.
    package func terminate(_ part: Part, within: Duration) async -> ClusterProcess.End? {
        await onOwnThread { [self] in process(part)?.terminate(within: within) }
    }

    package func process(_ part: Part) -> ClusterProcess? {
        part == .database ? server.running : supervisor.process(part.name)
    }

    /// Parts that ended though nobody killed them, with the end of what they said.
    package var fallen: [String] {
        supervisor.ended.map { "\($0.name) ended: \($0.process.logTail())" }
    }

    // MARK: Readiness

    /// Waits until a part can be used.
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
            case .broker: Ports.isListening(home.ports[.broker] ?? 0)
            case .identity: await answers(identityURL + "/.well-known/openid-configuration")
            case .sap, .economic, .compass: await answers(home.url(part) + "/sandbox/stats")
            default: await answers(adminURL(part) + "/health/ready")
            }
        // Another installation's process answers as well as this one's.
        guard isAnswered, let process = process(part) else { return false }
        let port = part.service == nil ? home.ports[part] : home.adminPorts[part]
        return Ports.isListening(port ?? 0, by: process.id)
    }

    /// Where a service tells its metrics and its health.
    package func adminURL(_ part: Part) -> String { "http://127.0.0.1:\(home.adminPorts[part] ?? 0)" }

    private func answers(_ url: String) async -> Bool {
        let response = try? await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
        return response?.status == 200
    }
}
