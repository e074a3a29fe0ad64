import ArgumentParser
import Foundation
import HTTPClient
import Postgres
import ServiceRuntime
import ServiceSettings
import Telemetry

/// `workbench demo`: an organisation's people register time, do tasks and share appointments on their devices, and
/// everything is checked.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "An organisation's people register time, do tasks and share on devices; at the end all is checked.",
        discussion: """
            Needs the services and the sandbox. A second run continues: what is there is not made again. The exit \
            status is 1 when the devices, their realms, what was planned and the back end differ.
            """)

    @Option(
        help: """
            Folder with the Tock time sheets, and with service requests of Los Angeles and OpenStack's meetings if \
            there are any; without it an organisation is generated.
            """)
    var data: String?
    @Option(help: "How many people: 40 are generated, and all of --data take part, unless given.") var people: Int?
    @Option(help: "Seed of the generated organisation, and of who is offline when.") var seed: UInt64 = 1
    @Option(help: "The realm-gateway's address. (default: GATEWAY_URL, else http://127.0.0.1:8080)")
    var gateway: String?
    @Option(help: "The sandbox's identity provider. (default: IDENTITY_URL, else http://127.0.0.1:8081)")
    var identity: String?
    @Option(help: "The SAP sandbox. (default: SAP_URL, else http://127.0.0.1:8200)") var sap: String?
    @Option(help: "The e-conomic sandbox, to be the environment's back end in place of SAP.") var economic: String?
    @Option(help: "The sandbox of Compass, to be the environment's tracker of defects; without it there is none.")
    var compass: String?
    @Option(
        help: """
            The environment, added unless it is there: tock with --data, and demo without, unless given; with \
            --economic its name ends in -economic, with --entra in -entra.
            """)
    var environment: String?
    @Flag(help: "The identity provider of an environment that is added has the shape of Microsoft Entra ID.")
    var entra = false
    @Option(help: "PostgreSQL connection string; FIELDPOST_DATABASE_URL unless given.") var database: String?
    @Option(help: "How many devices work on entries at a time.") var devicesParallel = 200
    @Flag(
        help: """
            Has the back end's sandbox answer 5 % 503 and 2 % 429, lose 2 % of its answers, commit 1 % late and take \
            20 ms.
            """)
    var chaos = false
    @Flag(
        help: """
            Nobody makes mistakes that are deleted: after a failover with loss, an entry whose deletion was lost comes \
            back with the back end's record.
            """)
    var withoutDeletions = false
    @Option(help: "Seconds after which what is unfinished counts as a difference.") var timeLimit = 1800
    @Flag(help: "Only compare devices, realms and back end; write nothing.") var verifyOnly = false
    @Option(help: "File for the figures as JSON.") var json: String?

    /// Every device has a stream of its own open all the time, and now and then a request beside it.
    private static let connectionsMax = 20_000

    func validate() throws {
        guard devicesParallel >= 1 else { throw ValidationError("--devices-parallel must be at least 1") }
        guard timeLimit >= 1 else { throw ValidationError("--time-limit must be at least 1") }
        guard people.map({ $0 >= 1 }) ?? true else { throw ValidationError("--people must be at least 1") }
    }

    func run() async throws {
        let variable = Setting.databaseURL.variable
        guard let conninfo = database ?? ProcessInfo.processInfo.environment[variable], !conninfo.isEmpty else {
            throw ValidationError("give --database or set \(variable)")
        }
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = Self.connectionsMax
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        let backend = backend(client)
        let gateway = DemoAddresses.url(gateway, "GATEWAY_URL", default: 8080)
        let identity = DemoAddresses.url(identity, "IDENTITY_URL", default: 8081)
        let compass = compass.map { SandboxCompass(client: client, url: DemoAddresses.url($0)) }
        try await DemoAddresses(client, gateway: gateway, identity: identity, backend: backend, compass: compass)
            .check()
        let login = try DemoLogin.inherited()
        let run = DemoRun(
            console: DemoConsole(), client: client, pool: try Pool(conninfo, size: 2),
            gateway: GatewayClient(client: client, url: gateway),
            identity: IdentitySandbox(client: client, url: identity), backend: backend, compass: compass, login: login,
            isEntra: entra,
            environmentName: environment ?? (data == nil ? "demo" : "tock") + (economic == nil ? "" : "-economic")
                + (entra ? "-entra" : ""),
            seed: seed,
            parallelMax: devicesParallel, isChaotic: chaos, hasDeletions: !withoutDeletions,
            deadline: ContinuousClock.now + .seconds(timeLimit))
        let report = try await run.run(data: data, people: people, isVerifyOnly: verifyOnly)
        run.console.say(report.text)
        if verifyOnly {
            // Nothing was changed, nobody's login either.
        } else if login == nil {
            run.console.say(
                "nobody can log in: \(DemoLogin.secretVariable) and \(Setting.secretKeys.variable) are not both set")
        } else {
            let people = report.examples.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            run.console.say(
                "people can log in with the password \(DemoLogin.password): \(people.joined(separator: ", "))")
        }
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(report).write(to: URL(fileURLWithPath: json))
        }
        if report.differenceCount > 0 { throw ExitCode(1) }
    }

    private func backend(_ client: Client) -> any DemoBackend {
        if let economic {
            return SandboxEconomic(client: client, url: DemoAddresses.url(economic, "ECONOMIC_URL", default: 8300))
        }
        return SandboxSAP(client: client, url: DemoAddresses.url(sap, "SAP_URL", default: 8200))
    }
}
