import ArgumentParser
public import Backends
import CommandLineSupport
import ServiceSettings

/// The operators' command line `fieldpost`; `--json` prints output for scripts.
public enum FieldpostCommandLine {
    /// Runs the command of the process's arguments, then exits the process.
    ///
    /// - Parameter adapters: The kinds of back ends of other packages, in addition to the built-in ones.
    public static func run(adapters: [BackendKind] = []) async -> Never {
        BackendKind.add(adapters)
        await runCommandLine(FieldpostCommand.self)
    }
}

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
            SchemaCommand.self,
        ])
}
