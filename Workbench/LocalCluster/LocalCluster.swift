import Foundation
import HTTP
import Synchronization

/// A whole Fieldpost of real processes: PostgreSQL, the sandbox's broker, identity provider and SAP, and the services.
///
/// Each part can be killed and started again at the same address: PostgreSQL and back ends keep what they had, the
/// broker comes back empty. Everything ends with `stop`, or when this process does, however it ends.
package final class LocalCluster: Sendable {
    package enum Part: String, CaseIterable, Sendable {
        case database = "postgres"
        case broker = "sandbox-broker"
        case identity = "sandbox-identity"
        case sap = "sandbox-sap"
        case economic = "sandbox-economic"
        case relay = "change-relay"
        case gateway = "realm-gateway"
        case initializer = "realm-initializer"
        case submitter = "entry-submitter"
        /// Not among `services`: a flow that needs it names it.
        case poller = "backend-poller"
        case onboarding = "onboarding"
        /// A second instance of onboarding, behind the first one's address.
        case onboardingTwo = "onboarding-two"
        /// Second instances of the others. No phone knows the second gateway.
        case relayTwo = "change-relay-two"
        case gatewayTwo = "realm-gateway-two"
        case initializerTwo = "realm-initializer-two"
        case submitterTwo = "entry-submitter-two"
        case pollerTwo = "backend-poller-two"

        package static let services: [Part] = [.relay, .gateway, .initializer, .submitter]
        /// The second instances of `services` and the poller.
        package static let secondInstances: [Part] = [
            .relayTwo, .gatewayTwo, .initializerTwo, .submitterTwo, .pollerTwo,
        ]

        /// What it is the second instance of, or itself.
        var first: Part {
            let second = "-two"
            return rawValue.hasSuffix(second) ? Part(rawValue: String(rawValue.dropLast(second.count))) ?? self : self
        }
    }

    package struct Options: Sendable {
        /// The services to run.
        package var services = Part.services
        /// Whether onboarding serves the page on which a person is a device.
        package var deviceHasPage = false
        /// Whether the sandbox's e-conomic runs beside its SAP.
        package var hasEconomic = false
        /// Environment variables per service, beside those that make up the suite.
        package var variables: [Part: [String: String]] = [:]
        /// Whether the database has a standby, which services find by themselves once it is promoted.
        package var hasStandby = false
        /// PostgreSQL's settings.
        package var database: [String: String] = [:]

        package init() {}

        /// Short waits: a lost worker is noticed in seconds, a call ends within two, and what became of it is asked two
        /// seconds later. For tests; a real back end may commit later than that.
        package static var quick: Options {
            let kafka = ["FIELDPOST_KAFKA_SESSION_TIMEOUT_MS": "6000", "FIELDPOST_KAFKA_HEARTBEAT_INTERVAL_MS": "1000"]
            let call = ["FIELDPOST_BACKEND_CALL_MAX": "2s"]
            var options = Options()
            options.variables[.initializer] = kafka.merging(call) { $1 }
            options.variables[.poller] = kafka.merging(call) { $1 }
            options.variables[.submitter] = kafka.merging(call) { $1 }.merging(
                ["FIELDPOST_SUBMITTER_SETTLE_MIN": "2s", "FIELDPOST_SUBMITTER_RETRY_MAX": "2s"]
            ) { $1 }
            return options
        }
    }

    package let folder: ClusterFolder
    /// A libpq connection string of the suite's database.
    package let conninfo: String
    package let brokers: String
    package let gatewayURL: String
    package let identityURL: String
    package let sapURL: String
    package let economicURL: String
    package let onboardingURL: String
    package let onboardingTwoURL: String
    /// The variable under which services find the password of SAP's user `FIELDPOST`.
    package static let passwordVariable = "SANDBOX_SAP_PASSWORD"
    package static let passwordOfSAP = "sandbox"
    /// The variable under which services find e-conomic's tokens.
    package static let tokensVariable = "SANDBOX_ECONOMIC_TOKENS"
    package static let tokensOfEconomic = "sandbox-app:sandbox-grant"
    /// The OAuth client that the identity provider knows, with its secret.
    package static let clientID = "fieldpost"
    package static let clientSecret = "sandbox-secret"
    /// The variable of `fieldpost` that holds the secret.
    package static let clientSecretVariable = "SANDBOX_CLIENT_SECRET"

    let server: ClusterServer
    /// The database's standby.
    package let standby: ClusterServer?
    let client: Client
    let ports: [Part: Int]
    let adminPorts: [Part: Int]
    let options: Options
    let processes = Mutex<[Part: ClusterProcess]>([:])

    /// Makes everything and starts it; returns when every service is ready.
    package init(_ name: String, _ options: Options = .quick) async throws {
        self.options = options
        let folder = try ClusterFolder(name)
        self.folder = folder
        var ports: [Part: Int] = [:]
        var adminPorts: [Part: Int] = [:]
        for part in [Part.broker, .identity, .sap, .economic, .gateway, .gatewayTwo, .onboarding, .onboardingTwo] {
            ports[part] = try Ports.free()
        }
        for part in options.services { adminPorts[part] = try Ports.free() }
        func address(_ part: Part) -> String { "127.0.0.1:\(ports[part] ?? 0)" }
        brokers = address(.broker)
        gatewayURL = "http://" + address(.gateway)
        identityURL = "http://" + address(.identity)
        sapURL = "http://" + address(.sap)
        economicURL = "http://" + address(.economic)
        onboardingURL = "http://" + address(.onboarding)
        onboardingTwoURL = "http://" + address(.onboardingTwo)
        self.ports = ports
        self.adminPorts = adminPorts
        client = Client()
        (server, standby, conninfo) = try await withOwnThread {
            let server = try ClusterServer(in: folder, options: options.database)
            try server.start()
            let conninfo = try server.makeDatabase("fieldpost")
            guard options.hasStandby else { return (server, nil, conninfo) }
            let standby = try server.makeStandby()
            return (server, standby, server.conninfo("fieldpost", or: standby))
        }
        try await runCommand(["migrate", "--schema", Self.schemaFolder])
        let parts = [Part.broker, .identity, .sap] + (options.hasEconomic ? [.economic] : []) + options.services
        for part in parts { try start(part) }
        for part in parts { try await waitUntilReady(part) }
    }

    deinit { end() }

    /// Ends everything as a crash would, and removes what it kept.
    package func stop() async {
        await withOwnThread { [self] in end() }
        client.shutDown()
    }

    private func end() {
        for process in processes.withLock({ $0.values.map(\.self) }) { process.kill9() }
        server.kill9()
        standby?.kill9()
        folder.remove()
    }

    // MARK: Parts

    /// Starts a part that does not run.
    package func start(_ part: Part) throws {
        if part == .database { return try server.start() }
        let process = try ClusterProcess(command(part))
        processes.withLock { $0[part] = process }
    }

    /// Kills a part with signal 9; its process group and, for PostgreSQL, every process of the server.
    package func kill9(_ part: Part) async {
        await withOwnThread { [self] in
            if part == .database { server.kill9() } else { process(part)?.kill9() }
        }
    }

    /// Kills a part and starts it again at once; the broker comes back empty. Does not wait until it is ready.
    package func restart(_ part: Part) async throws {
        await kill9(part)
        try await withOwnThread { [self] in try start(part) }
        if part == .broker { try await waitUntilReady(.broker) }
    }

    /// Stops a part where it is, as a machine does that is suspended, until `thaw`.
    package func freeze(_ part: Part) { signal(part, SIGSTOP) }

    package func thaw(_ part: Part) { signal(part, SIGCONT) }

    private func signal(_ part: Part, _ number: Int32) {
        if part == .database { server.signal(number) } else { process(part)?.signal(number) }
    }

    /// Asks a service to stop, and waits.
    ///
    /// - Returns: How it ended; `nil` when it still runs after `within`.
    package func terminate(_ part: Part, within: Duration) async -> ClusterProcess.End? {
        await withOwnThread { [self] in process(part)?.terminate(within: within) }
    }

    package func process(_ part: Part) -> ClusterProcess? { processes.withLock { $0[part] } }

    /// Parts that ended though nobody killed them, with the end of what they said.
    package var fallen: [String] {
        processes.withLock { $0 }.compactMap { part, process in
            process.end.map { "\(part.rawValue) ended (\($0)): \(process.logTail())" }
        }
    }

    // MARK: Readiness

    /// Waits until a part can be used.
    package func waitUntilReady(_ part: Part, within: Duration = .seconds(240)) async throws {
        let deadline = ContinuousClock.now + within
        while await !isReady(part) {
            if part != .database, let end = process(part)?.end {
                throw ClusterFailure("\(part.rawValue) ended (\(end)): \(process(part)?.logTail() ?? "")")
            }
            guard .now < deadline else {
                throw ClusterFailure("\(part.rawValue) is not ready after \(within): \(process(part)?.logTail() ?? "")")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func isReady(_ part: Part) async -> Bool {
        switch part {
        case .database: true  // `start` has waited for it
        case .broker: Ports.isListening(ports[.broker] ?? 0)
        case .identity: await answers(identityURL + "/.well-known/openid-configuration")
        case .sap: await answers(sapURL + "/sandbox/stats")
        case .economic: await answers(economicURL + "/sandbox/stats")
        case .relay, .gateway, .initializer, .submitter, .poller, .onboarding, .relayTwo, .gatewayTwo, .initializerTwo,
            .submitterTwo, .pollerTwo, .onboardingTwo:
            await answers(adminURL(part) + "/health/ready")
        }
    }

    /// Where a service tells its metrics and its health.
    package func adminURL(_ part: Part) -> String { "http://127.0.0.1:\(adminPorts[part] ?? 0)" }

    private func answers(_ url: String) async -> Bool {
        let response = try? await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
        return response?.status == 200
    }
}
