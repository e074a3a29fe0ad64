import ArgumentParser
import Foundation
import HTTPClient
import Postgres
import ServiceSettings

/// `workbench demo`: an organisation's people register time, do tasks and share appointments on their devices, and
/// everything is checked.
struct DemoCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Simulate an organisation's devices, and verify the result.",
        discussion: """
            Needs the services and the emulators. A second run continues with the existing data. The exit status is 1 \
            if the devices, their realms, the plan and the back end differ.

            --data names a folder with time sheets of Tock and, optionally, service requests of Los Angeles and \
            meetings of OpenStack; without it an organisation of 40 people is generated. The environment is added \
            unless it exists. Its default name is tock with --data, otherwise demo, followed by -economic with \
            --economic and -entra with --entra.

            The default addresses are GATEWAY_URL, IDENTITY_URL and SAP_URL, otherwise the ports 8080, 8081 and 8200 \
            of 127.0.0.1.

            --faults injects 5 % 503, 2 % 429, 2 % lost responses, 1 % late commits and 20 ms latency into the back end.

            After a failover with loss, an entry whose deletion was lost returns from the back end's record; \
            --without-deletions avoids deletions.
            """)

    @Option(help: "Folder with real data; an organisation is generated unless given.") var data: String?
    @Option(help: "Number of people; all of the organisation unless given.") var people: Int?
    @Option(help: "Seed of the organisation, and of the times offline.") var seed: UInt64 = 1
    @Option(help: "Address of the realm-gateway.") var gateway: String?
    @Option(help: "Address of the identity provider.") var identity: String?
    @Option(help: "Address of the SAP emulator.") var sap: String?
    @Option(help: "Address of the e-conomic emulator, the back end instead of SAP.") var economic: String?
    @Option(help: "Address of the Compass emulator; no defects unless given.") var compass: String?
    @Option(help: "Name of the environment.") var environment: String?
    @Flag(help: "Add an environment with an issuer like Microsoft Entra ID's.") var entra = false
    @Option(help: "PostgreSQL connection string. (default: FIELDPOST_DATABASE_URL)") var database: String?
    @Option(help: "Maximum number of concurrent devices.") var devicesParallel = 200
    @Flag(help: "Inject faults into the back end.") var faults = false
    @Flag(help: "Write no entries that are deleted later.") var withoutDeletions = false
    @Option(help: "Seconds after which unfinished work is a difference.") var timeLimit = 1800
    @Flag(help: "Only compare devices, realms and back end.") var verifyOnly = false
    @OptionGroup var output: ScenarioOptions

    /// Every device has an open stream, and at times a request.
    private static let connectionsMax = 20_000

    func validate() throws {
        guard devicesParallel >= 1 else { throw ValidationError("--devices-parallel must be at least 1") }
        guard timeLimit >= 1 else { throw ValidationError("--time-limit must be at least 1") }
        guard people.map({ $0 >= 1 }) ?? true else { throw ValidationError("--people must be at least 1") }
    }

    /// The environment's name.
    var environmentName: String {
        environment ?? (data == nil ? "demo" : "tock") + (economic == nil ? "" : "-economic")
            + (entra ? "-entra" : "")
    }

    func report() async throws -> ScenarioReport {
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
        try await DemoAddresses.check(
            client, gateway: gateway, identity: identity, backend: backend, compass: compass)
        let run = DemoRun(
            options: self, pool: try Pool(conninfo, size: 2), gateway: GatewayClient(client: client, url: gateway),
            identity: IdentitySandbox(client: client, url: identity), backend: backend, compass: compass,
            login: try DemoLogin.inherited(), deadline: ContinuousClock.now + .seconds(timeLimit))
        return try await run.run()
    }

    private func backend(_ client: Client) -> any DemoBackend {
        if let economic {
            return SandboxEconomic(client: client, url: DemoAddresses.url(economic, "ECONOMIC_URL", default: 8300))
        }
        return SandboxSAP(client: client, url: DemoAddresses.url(sap, "SAP_URL", default: 8200))
    }
}
