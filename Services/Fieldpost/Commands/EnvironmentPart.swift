import Audit
import Model
import Postgres
import Tenants

/// Something that an environment may have, and that a command takes away again.
enum EnvironmentPart {
    /// Takes it away, with a record of that, and says so.
    ///
    /// - Parameters:
    ///   - part: What it is called: `defects`.
    ///   - statements: What takes it away; `nil` when the environment has none.
    ///   - afterwards: What follows when it is gone.
    static func remove(
        _ part: String, from name: String, _ database: DatabaseOptions,
        _ statements: (EnvironmentID, inout Connection) throws -> [Statement]?,
        afterwards: (EnvironmentID, inout Connection) throws -> Void = { _, _ in }
    ) throws {
        var connection = try database.connect(EnvironmentStore.limits)
        try EnvironmentStore.lock(name, on: &connection)
        let id = try DefectsCommand.environment(name, on: &connection)
        guard let statements = try statements(id, &connection) else {
            // What follows may have been broken off.
            try afterwards(id, &connection)
            throw CommandFailure("\(name) has no \(part)")
        }
        try connection.run(
            statements + [
                Administrator.commandLine.audit(
                    .environmentChanged, name, in: id, detail: ["changed": "\(part) removed"])
            ])
        try afterwards(id, &connection)
        print("\(name) has no \(part) any more")
    }
}
