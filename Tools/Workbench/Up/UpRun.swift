import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import Synchronization

/// Starts the installation, runs the demo, and supervises all processes until it is cancelled.
final class UpRun: Sendable {
    private let options: UpCommand
    private let state: UpState
    private let console: ScenarioConsole
    private let cluster = Mutex<LocalCluster?>(nil)
    private let demo = Mutex<ClusterProcess?>(nil)
    private let interruptedWith = Mutex<Int32?>(nil)

    private static let stopMax = Duration.seconds(15)
    private static let beat = Duration.milliseconds(500)

    init(options: UpCommand, state: UpState, console: ScenarioConsole) {
        self.options = options
        self.state = state
        self.console = console
    }

    /// The exit status that a signal gave.
    var interruption: Int32? { interruptedWith.withLock { $0 } }

    /// A signal was received: it is the reason of later failures.
    func interrupted(_ status: Int32) { interruptedWith.withLock { $0 = status } }

    /// - Returns: The exit status of the demo, if it ends after the demo.
    func run() async throws -> Int32 {
        let cluster = try await startDatabase()
        try Task.checkCancellation()
        try await cluster.runCommand(["migrate", "--finish", "--schema", LocalCluster.schemaFolder], log: "migrate")
        try moveAddresses(cluster.conninfo)
        try await cluster.startAll(LocalCluster.Part.emulators)
        try await setSwitches()
        try await cluster.runCommand(["topics", "apply"], log: "topics")
        console.log("sandbox: broker, identity provider, SAP, e-conomic and Compass")
        try await cluster.startAll(LocalCluster.Part.services)
        console.log("\(Services.all.map(\.name).formatted(.list(type: .and).locale(Self.english))) are ready")
        console.log("the console: \(cluster.consoleURL) (\(LocalCluster.consoleAdministrator), password: sandbox)")

        let status = options.noDemo ? 0 : try await runDemos(cluster)
        if status != 0 { console.log("the demo ended with status \(status)") }
        if options.once { return status }
        console.write(try addresses(cluster))
        while true {
            supervise(cluster)
            try await Task.sleep(for: Self.beat)
        }
    }

    private static let english = Locale(identifier: "en_GB")

    /// Stops all parts in the reverse order of their start, each within a time limit.
    func stop() async {
        guard let cluster = cluster.withLock({ $0 }) else { return }
        let console = console
        if let demo = demo.withLock({ $0 }), demo.isRunning { demo.signal(SIGTERM) }
        await cluster.stopInOrder(each: Self.stopMax) { name in
            console.log("\(name) did not stop within \(Self.stopMax.components.seconds) s and is killed")
        }
        demo.withLock { $0 }?.kill9()
        for name in (try? FileManager.default.contentsOfDirectory(atPath: state.path + "/pid")) ?? [] {
            try? FileManager.default.removeItem(atPath: "\(state.path)/pid/\(name)")
        }
        console.log("stopped")
    }

    private func supervise(_ cluster: LocalCluster) {
        for fall in cluster.supervisor.restartWhatEnded() {
            let end = fall.end.map { "ended with status \($0.status)" } ?? "could not be started"
            let wait = fall.wait.components.seconds
            console.log("\(fall.name) \(end); it is restarted in \(wait) s (log: .fieldpost/log/\(fall.name).log)")
        }
    }

    // MARK: PostgreSQL

    private func startDatabase() async throws -> LocalCluster {
        let (state, console) = (state, console)
        let (server, conninfo) = try await onOwnThread {
            try state.startDatabase { console.log("creating a PostgreSQL in \($0)") }
        }
        try state.writeEnvironment(executables: LocalCluster.executables)
        var options = LocalCluster.Options()
        options.services = LocalCluster.Part.services
        options.showcases = options.services
        options.hasConsole = true
        for part in options.services { options.variables[part] = ["FIELDPOST_SHUTDOWN_MAX": "10s"] }
        // The demo's tasks are kept as long as the folder.
        for name in ["COMPLETED_KEEP", "ARCHIVE_AFTER"] {
            options.variables[.taskFanOut]?["FIELDPOST_TASK_\(name)"] = "3650d"
        }
        options.arguments[.broker] = try Self.ownTopics(conninfo).flatMap { topic in
            ["--topic", "\(topic.name):\(topic.partitions)"]
        }
        let cluster = LocalCluster(state.home, server, conninfo: conninfo, options)
        try cluster.superviseDatabase()
        self.cluster.withLock { $0 = cluster }
        console.log("PostgreSQL on 127.0.0.1:\(state.ports["postgres"])")
        return cluster
    }

    /// The topics that environments have declared. The sandbox's broker starts with them, because it creates none on
    /// request.
    private static func ownTopics(_ conninfo: String) throws -> [Topic] {
        var connection = try Connection(conninfo)
        let rows = try connection.runIfTableExists("SELECT DISTINCT topic FROM realm.own_kind WHERE topic IS NOT NULL")
        return try rows?.decode(String.self).map { Topic(own: $0) } ?? []
    }

    /// Updates the emulators' addresses in the database after a port has changed.
    private func moveAddresses(_ conninfo: String) throws {
        guard !state.ports.moved.isEmpty else { return }
        var connection = try Connection(conninfo)
        for (name, old) in state.ports.moved.sorted(by: { $0.key < $1.key }) {
            let new = state.ports[name]
            console.log("port \(old) of \(name) is taken, it moves to \(new)")
            let (from, to) = ("http://127.0.0.1:\(old)", "http://127.0.0.1:\(new)")
            try connection.run(UpStatements.moveAddress(from: from, to: to))
        }
    }

    /// One person of each role who can log in to the app, administrators last; of the demo's environment if it exists.
    private func findPeople(_ conninfo: String) throws -> [(role: String, email: String)] {
        var connection = try Connection(conninfo)
        let environment = UpCommand.environment(ofDemo: options.sapDemoOptions) ?? ""
        let rows = try connection.run(
            UpStatements.people(at: state.home.url(.identity) + "/", before: environment))
        return try rows.decode(String.self, String.self).map { ($0, $1) }.sorted { $0.role > $1.role }
    }

    // MARK: The demo

    private func setSwitches() async throws {
        if options.faults {
            console.log(
                "fault injection: 5 % 503, 2 % 429, 2 % of responses lost after recording, 1 % late commits, 20 ms "
                    + "latency")
        }
        let client = Client()
        defer { client.shutDown() }
        let emulators: [any EmulatorControl] = [
            SandboxSAP(client: client, url: state.home.url(.sap)),
            SandboxEconomic(client: client, url: state.home.url(.economic)),
            SandboxCompass(client: client, url: state.home.url(.compass)),
        ]
        let switches = options.faults ? EmulatorFaults.random : EmulatorFaults.none
        for emulator in emulators { try await emulator.setSwitches(switches) }
    }

    /// The demo's environment with SAP as its back end, then a small one with e-conomic.
    private func runDemos(_ cluster: LocalCluster) async throws -> Int32 {
        console.log("demo: an environment with SAP and Compass")
        let first = try await runDemo(options.sapDemoOptions, cluster)
        console.log("demo: an environment with e-conomic")
        let faults = options.faults ? ["--faults"] : []
        let second = try await runDemo(["--economic", cluster.economicURL, "--people", "10"] + faults, cluster)
        return second == 0 ? first : second
    }

    /// Supervises the installation while a demo runs.
    private func runDemo(_ options: [String], _ cluster: LocalCluster) async throws -> Int32 {
        let process = try cluster.startDemo(options, log: nil, hasCompass: !options.contains("--economic"))
        demo.withLock { $0 = process }
        while process.isRunning {
            supervise(cluster)
            try await Task.sleep(for: Self.beat)
        }
        return process.end?.status ?? 0
    }

    // MARK: What is printed

    private func addresses(_ cluster: LocalCluster) throws -> String {
        let home = state.home
        let people = try findPeople(cluster.conninfo).map { (Role(rawValue: $0.role)?.title ?? $0.role, $0.email) }
        var lines = [("field app", "\(cluster.onboardingURL)/app/      (password of all people: sandbox)")]
        lines += people.map { ("  \($0.0)", $0.1) }
        lines.append(
            ("console", "\(cluster.consoleURL)      (\(LocalCluster.consoleAdministrator), password: sandbox)"))
        lines += state.addresses.map { ($0.title, "\($0.url)      (\($0.page))") }
        lines += [
            ("Kafka", "\(cluster.brokers)      (kcat -b \(cluster.brokers) -t entry.events)"),
            ("PostgreSQL", "127.0.0.1:\(state.ports["postgres"])"),
            ("logs", ".fieldpost/log"), ("metrics, health", "http://127.0.0.1:PORT/metrics, …/health/ready"),
        ]
        lines += LocalCluster.Part.services.map { ("  \($0.name)", ":\(home.adminPorts[$0] ?? 0)") }
        let table = lines.map { "  \($0.0)\(String(repeating: " ", count: max(1, 20 - $0.0.count)))\($0.1)\n" }
        return """

            \(table.joined())
              In a second terminal: source .fieldpost/environment && fieldpost lag
              Then try the quick start in README.md. Ctrl-C stops everything.


            """
    }
}
