import ArgumentParser
import Foundation
import UnixSignals

/// `workbench up`: runs what `deploy/up` has built.
struct UpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Run Fieldpost with emulators on this machine until Ctrl-C.",
        discussion: """
            deploy/up builds and then runs this command in the folder of the sources. State between runs is in \
            .fieldpost; run `source .fieldpost/environment` to use fieldpost, psql and kcat with it. A process that \
            ends is restarted with exponential backoff.
            """)

    @Option(help: "For the demo: folder with real data.") var data: String?
    @Option(help: "For the demo: number of people.") var people: Int?
    @Flag(help: "For the demo: an issuer in the form of Microsoft Entra ID.")
    var entra = false
    @Flag(help: "Inject faults into the back ends.") var faults = false
    @Flag(help: "Run without the demo.") var noDemo = false
    @Flag(help: "Stop after the demo, with its exit status.") var once = false
    @Option(help: ArgumentHelp("Seconds that went by before, in what is printed.", visibility: .hidden))
    var secondsBefore = 0
    @Argument(parsing: .postTerminator, help: "After `--`: options of `workbench demo`, with SAP as the back end.")
    var demoOptions: [String] = []

    func validate() throws {
        guard people.map({ $0 >= 1 }) ?? true else { throw ValidationError("--people needs a number from 1 on") }
        if let data, !FileManager.default.fileExists(atPath: data) {
            throw ValidationError("--data \(data): there is no such folder")
        }
    }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let console = ScenarioConsole(secondsBefore: secondsBefore)
        let state = try UpState(folder: FileManager.default.currentDirectoryPath + "/.fieldpost")
        let run = UpRun(options: self, state: state, console: console)
        let work = Task { try await run.run() }
        let watch = Task {
            // To the end: a second signal must not end this process while it stops the others.
            for await signal in signals where run.interruption == nil {
                run.interrupted(signal == .sigint ? 130 : 143)
                work.cancel()
            }
        }
        let result = await work.result
        await run.stop()
        watch.cancel()
        if let status = run.interruption { throw ExitCode(status) }
        let status = try result.get()
        if status != 0 { throw ExitCode(status) }
    }

    /// All options of the demo with SAP.
    var sapDemoOptions: [String] {
        (data.map { ["--data", $0] } ?? []) + (people.map { ["--people", "\($0)"] } ?? [])
            + (faults ? ["--faults"] : []) + (entra ? ["--entra"] : []) + demoOptions
    }

    /// The environment that a demo works in; `nil` if its options are invalid.
    static func environment(ofDemo options: [String]) -> String? { try? DemoCommand.parse(options).environmentName }
}
