// What developers run Fieldpost with on one machine: the demo and the benchmarks. Nothing that ships links it.

import ArgumentParser
import Commands
import Runtime

struct WorkbenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "workbench", abstract: "Runs, tries and measures Fieldpost on one machine.",
        version: "workbench \(fieldpostVersion)", subcommands: [DemoCommand.self, BenchCommand.self])
}

await runCommandLine(WorkbenchCommand.self)
