// What developers run Fieldpost with on one machine: all of it, the demo, the benchmarks and the rehearsals. Nothing
// that ships links it.

import ArgumentParser
import CommandLineSupport
import ServiceSettings

struct WorkbenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "workbench", abstract: "Runs, tries and measures Fieldpost on one machine.",
        version: "workbench \(fieldpostVersion)",
        subcommands: [
            UpCommand.self, DemoCommand.self, BenchCommand.self, KillTestCommand.self,
            ConvergeCommand.self, RehearseCommand.self, MoveCommand.self,
        ])
}

await runCommandLine(WorkbenchCommand.self)
