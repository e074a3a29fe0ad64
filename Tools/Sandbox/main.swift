// Emulators of the systems around Fieldpost, for development and tests.

import ArgumentParser
import CommandLineSupport

struct SandboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox", abstract: "Emulate the systems around Fieldpost.",
        subcommands: [
            IdentityCommand.self, SAPCommand.self, EconomicCommand.self, CompassCommand.self, BrokerCommand.self,
        ])
}

await runCommandLine(SandboxCommand.self)
