// The command line: what an operator does by hand, the demo, and the benchmarks.

import ArgumentParser
import Commands

struct FieldpostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fieldpost", abstract: "Operates Fieldpost.",
        subcommands: [DemoCommand.self])
}

await runCommandLine(FieldpostCommand.self)
