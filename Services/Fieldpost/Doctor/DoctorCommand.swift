import ArgumentParser
import BackendConnections
import CommandLineSupport
import FoundationEssentials
import Glibc
import Model
import Tenants

/// `fieldpost doctor`: checks all dependencies of an installation and suggests actions.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check all dependencies of an installation.",
        discussion: """
            Reads only, and can run at any time. Prints one line per check: OK, WARN (works, but not optimally or not \
            permanently) or FAIL, the finding, and the action. It checks the services' settings in this environment \
            (run it in theirs), PostgreSQL, Kafka and its topics, sealed secrets, each environment's identity provider \
            and back end, and certificates and clocks of all HTTP servers. Exits with status 1 if a check fails.
            """)
    @Option(
        help: "Limit the checks of providers and back ends to this environment.", completion: Completion.environments)
    var environment: String?
    @Option(help: "Check certificate and time of this URL too; may be repeated.") var url: [String] = []
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let wrong = url.first(where: { AddressCheck.origins([$0]).isEmpty }) {
            throw ValidationError("--url \(wrong) must begin with http:// or https://")
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
            BrokerCheck(options: brokers, database: database), SecretsCheck(options: database),
            EnvironmentsCheck(options: database, only: environment), AddressCheck(addresses: addresses(variables)),
        ]
        var findings: [DoctorFinding] = []
        for check in checks {
            let results = await check.findings()
            if !output.json { results.forEach(Self.show) }
            findings += results
        }
        if output.json { try printJSON(findings) } else { Self.summarize(findings) }
        if findings.contains(where: { $0.state == .failure }) { throw ExitCode(1) }
    }

    /// The folders that may contain the services: that of this program, or that of the Debian package.
    private static var folders: [URL] {
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            return []
        }
        let folder = URL(filePath: program).deletingLastPathComponent()
        return [folder, folder.deletingLastPathComponent().appending(path: "lib/fieldpost")]
    }

    /// The URLs of the options, of device-facing endpoints, and of the environments' external systems.
    private func addresses(_ variables: [String: String]) -> [String] {
        let endpoints = ["FIELDPOST_ONBOARDING_URL", "FIELDPOST_ONBOARDING_DEVICE_GATEWAY"].compactMap { variables[$0] }
        guard var connection = try? database.connect(check: nil),
            let names = try? EnvironmentStore.names(on: &connection)
        else { return url + endpoints }
        var addresses = url + endpoints
        for name in names.filter({ environment == nil || environment == $0 }).prefix(EnvironmentsCheck.countMax) {
            guard let stored = try? EnvironmentStore.load(name, on: &connection) else { continue }
            addresses += [stored.jwksURL, stored.backendURL]
            if let id = stored.id, let tracker = try? DefectTracker.load(id, on: &connection) {
                addresses.append(tracker.serverURL)
            }
        }
        return addresses
    }

    /// Prints a finding immediately: some checks wait for timeouts.
    private static func show(_ finding: DoctorFinding) {
        let width = DoctorFinding.State.warning.rawValue.count
        let state = finding.state.rawValue
        let padding = String(repeating: " ", count: width - state.count)
        let remedy = finding.remedy.map { " — \($0)" } ?? ""
        let text = Table.oneLine("\(finding.check): \(finding.seen)\(remedy)")
        print("\(Terminal.coloured(state, finding.state.colour))\(padding)  \(text)")
        fflush(nil)
    }

    private static func summarize(_ findings: [DoctorFinding]) {
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
