// The operators' command line; `--json` prints output for scripts.

import ArgumentParser
import CommandLineSupport
import ServiceSettings

struct FieldpostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fieldpost", abstract: "Operate a Fieldpost installation.",
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
            DeferredCommand.self,
            TraceCommand.self,
            AuditCommand.self,
            SecretsCommand.self,
        ])
}

await runCommandLine(FieldpostCommand.self)
