import ArgumentParser
import Glibc
import Logging
import ServiceLifecycle
import UnixSignals

/// The options of all emulators of back ends; `--port` has a default of its own for each.
struct EmulatorOptions: ParsableArguments {
    @Option(help: "Address to listen on.") var host = "127.0.0.1"
    @Option(help: "File that keeps the state over a restart; in memory unless given.") var state: String?

    /// Serves until SIGTERM or SIGINT, and prints the address.
    func run(_ emulator: some Emulator, as name: String, port: Int) async throws {
        let logger = Logger(label: "sandbox") { _ in SwiftLogNoOpLogHandler() }
        let service = EmulatorService(emulator: emulator, name: name, host: host, port: port)
        // The handler is needed: the first process of a container ignores signals without one.
        var configuration = ServiceGroupConfiguration(
            services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(5)
        try await ServiceGroup(configuration: configuration).run()
    }
}

private struct EmulatorService<Served: Emulator>: Service {
    let emulator: Served
    let name: String
    let host: String
    let port: Int

    func run() async throws {
        try await emulator.run(host: host, port: port) { port in
            print("sandbox \(name) listens on \(host):\(port)")
            fflush(nil)
        }
    }
}

/// `sandbox sap`.
struct SAPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sap", abstract: "Emulate SAP S/4HANA: time sheets, projects, business partners.")

    @OptionGroup var options: EmulatorOptions
    @Option(help: "Port to listen on; 0 takes a free one.") var port = 8200
    @Option(help: "User that is accepted.") var user = "FIELDPOST"
    @Option(help: "Password of the user.") var password = "sandbox"

    func run() async throws {
        let emulator = try SAPEmulator(state: options.state, user: user, password: password)
        try await options.run(emulator, as: "sap", port: port)
    }
}

/// `sandbox economic`.
struct EconomicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "economic", abstract: "Emulate e-conomic: time entries, projects, activities.")

    @OptionGroup var options: EmulatorOptions
    @Option(help: "Port to listen on; 0 takes a free one.") var port = 8201
    @Option(help: "X-AppSecretToken that is accepted.") var appSecretToken = "sandbox-app"
    @Option(help: "X-AgreementGrantToken that is accepted.") var agreementGrantToken = "sandbox-grant"

    func run() async throws {
        let emulator = try EconomicEmulator(
            state: options.state, appSecretToken: appSecretToken, agreementGrantToken: agreementGrantToken)
        try await options.run(emulator, as: "economic", port: port)
    }
}

/// `sandbox compass`.
struct CompassCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compass", abstract: "Emulate HCL Compass: defects, queries, edit sessions.")

    @OptionGroup var options: EmulatorOptions
    @Option(help: "Port to listen on; 0 takes a free one.") var port = 8202
    @Option(help: "Schema repository.") var repository = "CCMRepo"
    @Option(help: "User database.") var database = "SAMPL"
    @Option(help: "Service account that sees every record, added if missing.")
    var user = "fieldpost"
    @Option(help: "Password of that account, and of the people in --data.") var password = "sandbox"
    @Option(
        help: ArgumentHelp(
            "Tracker to load if there are no defects: lines of JSON, plain or .gz. May be repeated.",
            valueName: "file"))
    var data: [String] = []

    func run() async throws {
        let emulator = try CompassEmulator(state: options.state, repository: repository, database: database)
        let system = emulator.system
        if system.withState({ $0.users[user] == nil }) {
            system.load(CompassOrganisation(users: [CompassUser(name: user, password: password, isService: true)]))
        }
        if system.recordCount == 0 {
            for path in data {
                let count = try CompassTracker.load(path, into: system, password: password)
                print("\(path): \(count) defects")
            }
        }
        try await options.run(emulator, as: "compass", port: port)
    }
}
