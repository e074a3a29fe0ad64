// Development tools for one machine: the installation, the demo, benchmarks and fault injection. No shipped program
// links them.

import ArgumentParser
import CommandLineSupport
import ServiceSettings

struct WorkbenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "workbench", abstract: "Run, test and measure Fieldpost on one machine.",
        version: "workbench \(fieldpostVersion)",
        subcommands: [
            UpCommand.self, DemoCommand.self, BenchCommand.self, KillTestCommand.self,
            ConvergeCommand.self, HostsCommand.self, RehearseCommand.self, WatchCommand.self, MoveCommand.self,
            ConvertCommand.self,
        ])
}

await runCommandLine(WorkbenchCommand.self)
