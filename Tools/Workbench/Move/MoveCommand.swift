import ArgumentParser
import Foundation

/// `workbench move`: an environment goes from one installation to another while its devices work.
struct MoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "An environment goes to another installation while its devices work; how long it took, and paused.",
        discussion: """
            Runs two installations, each with a PostgreSQL, a broker, services and secret keys of its own, and one \
            back end and one identity provider for both. Devices write entries all the time; the environment is \
            exported, imported, let go and begun as operators do it, and the devices go where they are told. \
            Afterwards what was moved, what devices hold, what they were answered and what the back end recorded are \
            compared. The exit status is 1 when something differs.
            """)

    @Option(help: "How many objects there are beside those of the devices.") var objects = 100_000
    @Option(help: "How many devices work.") var devices = 20
    @Option(help: "How many answers to mutations are kept beside those of the devices. (default: a tenth of --objects)")
    var answers: Int?
    @Option(help: "How long each device waits from one entry to the next, in milliseconds.") var pause = 2_000
    @Option(help: "How often the stream is cut, and gone on with.") var cuts = 0
    @Option(help: "The seed of the organisation.") var seed: UInt64 = 1
    @Option(help: "File for the figures as JSON.") var json: String?

    func validate() throws {
        guard (1_000...100_000_000).contains(objects) else { throw ValidationError("--objects is 1000…100000000") }
        guard (1...1_000).contains(devices) else { throw ValidationError("--devices is 1…1000") }
        guard (0...100_000_000).contains(answers ?? 0) else { throw ValidationError("--answers is 0…100000000") }
        guard (10...600_000).contains(pause) else { throw ValidationError("--pause is 10…600000 ms") }
        guard (0...100).contains(cuts) else { throw ValidationError("--cuts is 0…100") }
    }

    func run() async throws {
        let run = MoveRun(
            objectCount: objects, deviceCount: devices, answerCount: answers ?? objects / 10,
            pause: .milliseconds(pause), cutCount: cuts, seed: seed)
        let report = try await run.run()
        print(report.text)
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(report).write(to: URL(fileURLWithPath: json))
        }
        if !report.differences.isEmpty { throw ExitCode(1) }
    }
}
