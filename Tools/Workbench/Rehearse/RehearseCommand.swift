import ArgumentParser
import Foundation
import LocalCluster
import Model

/// `workbench rehearse`: the demo, again and again, while each service is stopped, replaced, scaled and killed.
struct RehearseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "What operators do to each service, done while the demo runs, with a table of what came of it.",
        discussion: """
            Runs a PostgreSQL, stand-ins and services of its own. Each service is stopped for a while, replaced, \
            scaled from one instance to several and back, and killed; with the release before, the schema is migrated \
            between, and each service replaced by the new build. The demo runs meanwhile, one environment after the \
            other, and three devices say all the time how long they wait. The exit status is 1 when something was lost \
            or done twice, or a service did not end or come back as it should.
            """)

    @Option(
        name: .customLong("service"),
        help: ArgumentHelp("Only this service, with the others beside it; may be repeated.", valueName: "name"))
    var names: [String] = []
    @Option(help: "How many people each demo has.") var people = 6
    @Option(help: "To how many instances a service is scaled.") var instances = 4
    @Option(help: "How many seconds a service that is stopped stays away.") var away = 3
    @Option(
        help: ArgumentHelp(
            "The folder of the executables of the release before, which everything begins with.", valueName: "folder"))
    var before: String?
    @Option(help: ArgumentHelp("The folder of that release's schema files.", valueName: "folder"))
    var schemaBefore: String?
    @Option(help: "File for the table as JSON.") var json: String?

    func validate() throws {
        guard (1...1_000).contains(people) else { throw ValidationError("--people is 1…1000") }
        guard (2...8).contains(instances) else { throw ValidationError("--instances is 2…8") }
        guard (0...600).contains(away) else { throw ValidationError("--away is 0…600 seconds") }
        guard (before == nil) == (schemaBefore == nil) else {
            throw ValidationError("--before and --schema-before belong together")
        }
        for folder in [before, schemaBefore].compactMap(\.self)
        where !FileManager.default.fileExists(atPath: folder) {
            throw ValidationError("there is no folder \(folder)")
        }
        let known = Services.all.map(\.name)
        for name in names where !known.contains(name) {
            throw ValidationError("--service \(name): there are \(known.joined(separator: ", "))")
        }
    }

    func run() async throws {
        let services = Services.all.filter { names.isEmpty || names.contains($0.name) }
        let release = before.flatMap { before in
            schemaBefore.map { Rehearsal.Release(executables: before, schemaFolder: $0) }
        }
        let rehearsal = Rehearsal(
            parts: services.map { LocalCluster.Part($0) }, people: people, instanceCount: instances,
            away: .seconds(away), before: release)
        let report = try await rehearsal.run()
        print(report.text)
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(report).write(to: URL(fileURLWithPath: json))
        }
        if !report.troubles.isEmpty { throw ExitCode(1) }
    }
}
