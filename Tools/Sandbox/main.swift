// Stand-ins for a laptop and for tests: what Fieldpost needs around it, without the vendors.

import ArgumentParser
import CommandLineSupport

struct SandboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox", abstract: "Stand-ins for what Fieldpost needs around it.",
        subcommands: [
            IdentityCommand.self, SAPCommand.self, EconomicCommand.self, CompassCommand.self, BrokerCommand.self,
        ])
}

await runCommandLine(SandboxCommand.self)
