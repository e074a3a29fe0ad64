// The command line: for people who run Fieldpost, and with --json for their scripts.

import ArgumentParser
import CommandLineSupport
import ServiceSettings

struct FieldpostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fieldpost", abstract: "Runs and looks after a Fieldpost installation.",
        version: "fieldpost \(fieldpostVersion)",
        subcommands: [
            DoctorCommand.self,
            MigrateCommand.self,
            RestoreCommand.self,
            TopicsCommand.self,
            EnvironmentCommand.self,
            ImportCommand.self,
            RealmCommand.self,
            CheckCommand.self,
            RepairCommand.self,
            LagCommand.self,
            ParkedCommand.self,
            TraceCommand.self,
            AuditCommand.self,
            SecretsCommand.self,
        ])
}

await runCommandLine(FieldpostCommand.self)
