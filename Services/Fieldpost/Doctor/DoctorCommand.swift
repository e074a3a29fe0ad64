import ArgumentParser
import BackendConnections
import CommandLineSupport
import FoundationEssentials
import Glibc
import Model
import Tenants

/// `fieldpost doctor`: looks at everything an installation rests on, and says what to do.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look at everything an installation rests on, and say what to do.",
        discussion: """
            It reads only, and may be run at any time. Each line is one check: OK, WARN (works, but not for ever or \
            not as well as it could) or FAIL, what was seen, and what to do. It looks at services' settings in this \
            environment (run it as services are: in theirs), PostgreSQL, Kafka and its topics, sealed secrets, each \
            environment's identity provider and back end, and certificates and clocks of all that is called over HTTP. \
            Ends with status 1 when something fails.
            """)
    @Option(help: "Only this environment's identity provider and back end.") var environment: String?
    @Option(help: "Look at the certificate and the time of this address too, such as the gateway's; may be repeated.")
    var url: [String] = []
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let wrong = url.first(where: { AddressCheck.origins([$0]).isEmpty }) {
            throw ValidationError("--url \(wrong) is not an address that begins with http:// or https://")
        }
    }

    func run() async throws {
        var variables = ProcessInfo.processInfo.environment
        if let url = database.url { variables["FIELDPOST_DATABASE_URL"] = url }
        if let addresses = brokers.brokers { variables["FIELDPOST_KAFKA_BROKERS"] = addresses }
        let services = Services.all.compactMap { service in
            Self.folders.lazy.compactMap { ServiceSettings.load(service.name, in: $0, variables) }.first
        }
        let checks: [any DoctorCheck] = [
            SettingsCheck(services: services, variables: variables),
            DatabaseCheck(options: database, connectionsNeeded: SettingsRules.connectionCount(services)),
            BrokerCheck(options: brokers), SecretsCheck(options: database),
            EnvironmentsCheck(options: database, only: environment),
            AddressCheck(addresses: addresses(variables)),
        ]
        var findings: [DoctorFinding] = []
        for check in checks {
            let found = await check.findings()
            if !output.json { found.forEach(Self.show) }
            findings += found
        }
        if output.json { try printJSON(findings) } else { Self.summarise(findings) }
        if findings.contains(where: { $0.state == .failure }) { throw ExitCode(1) }
    }

    /// Where services may be: beside this program, or where the Debian package has them.
    private static var folders: [URL] {
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            return []
        }
        let folder = URL(filePath: program).deletingLastPathComponent()
        return [folder, folder.deletingLastPathComponent().appending(path: "lib/fieldpost")]
    }

    /// Those given, what devices are told, and what environments name.
    private func addresses(_ variables: [String: String]) -> [String] {
        let told = ["FIELDPOST_ONBOARDING_URL", "FIELDPOST_ONBOARDING_DEVICE_GATEWAY"].compactMap { variables[$0] }
        guard var connection = try? database.connect(check: nil),
            let names = try? EnvironmentStore.names(on: &connection)
        else { return url + told }
        var addresses = url + told
        for name in names.filter({ environment == nil || environment == $0 }).prefix(EnvironmentsCheck.countMax) {
            guard let stored = try? EnvironmentStore.load(name, on: &connection) else { continue }
            addresses += [stored.jwksURL, stored.backendURL]
            if let id = stored.id, let tracker = try? DefectTracker.load(id, on: &connection) {
                addresses.append(tracker.serverURL)
            }
        }
        return addresses
    }

    /// As soon as it is known: some checks wait for others' time-outs.
    private static func show(_ finding: DoctorFinding) {
        let width = DoctorFinding.State.warning.rawValue.count
        let state = finding.state.rawValue
        let padding = String(repeating: " ", count: width - state.count)
        let remedy = finding.remedy.map { " — \($0)" } ?? ""
        let text = Table.oneLine("\(finding.check): \(finding.seen)\(remedy)")
        print("\(Terminal.coloured(state, finding.state.colour))\(padding)  \(text)")
        fflush(nil)
    }

    private static func summarise(_ findings: [DoctorFinding]) {
        func count(_ state: DoctorFinding.State) -> Int { findings.count { $0.state == state } }
        print("\(count(.good)) OK, \(count(.warning)) WARN, \(count(.failure)) FAIL")
    }
}

extension DoctorFinding.State {
    fileprivate var colour: Terminal.Colour {
        switch self {
        case .good: .green
        case .warning: .yellow
        case .failure: .red
        }
    }
}
