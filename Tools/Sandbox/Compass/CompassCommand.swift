import ArgumentParser
import CommandLineSupport

/// `sandbox compass`: the Compass stand-in alone.
struct CompassCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compass", abstract: "A stand-in for HCL Compass: defects, queries, edit sessions.")

    @Option(help: "The address to listen on.") var host = "127.0.0.1"
    @Option(help: "The port to listen on; 0 takes a free one.") var port = 8202
    @Option(help: "The schema repository.") var repository = "CCMRepo"
    @Option(help: "The user database.") var database = "SAMPL"
    @Option(help: "A service account that sees every record; a user of this name that is there stays.")
    var user = "fieldpost"
    @Option(help: "The password of that account, and of the people whom --data brings.") var password = "sandbox"
    @Option(help: "A file that keeps what was committed over a restart; without it, it is forgotten.")
    var state: String?
    @Option(
        help: ArgumentHelp(
            "A tracker to begin with, where no defects are kept yet: lines of JSON, plain or .gz. May be repeated.",
            valueName: "file"))
    var data: [String] = []

    func run() async throws {
        let service = try CompassService(
            CompassService.Configuration(
                host: host, port: port, repository: repository, database: database, statePath: state))
        if service.system.withState({ $0.users[user] == nil }) {
            service.system.load(
                CompassOrganisation(users: [CompassUser(name: user, password: password, isService: true)]))
        }
        if service.system.recordCount == 0 {
            for path in data {
                let count = try CompassTracker.load(path, into: service.system, password: password)
                print("\(path): \(count) defects")
            }
        }
        try await service.run { print("sandbox compass listens on \(host):\($0)") }
    }
}
