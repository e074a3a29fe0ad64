import Audit
import Model
import Postgres
import Tenants

/// An optional configuration of an environment, such as its defect tracker, that a command removes.
enum EnvironmentFeature {
    /// Removes the configuration and records it in the audit log.
    ///
    /// - Parameters:
    ///   - feature: Its name: `defects`.
    ///   - statements: Returns the statements that remove it; `nil` if the environment has none.
    ///   - afterwards: Runs after the removal.
    static func remove(
        _ feature: String, from name: String, _ database: DatabaseOptions,
        _ statements: (EnvironmentID, inout Connection) throws -> [Statement]?,
        afterwards: (EnvironmentID, inout Connection) throws -> Void = { _, _ in }
    ) throws {
        var connection = try database.connect(EnvironmentStore.limits)
        try EnvironmentStore.lock(name, on: &connection)
        let id = try EnvironmentStore.find(name, on: &connection)
        guard let statements = try statements(id, &connection) else {
            // An earlier run may have been interrupted before this.
            try afterwards(id, &connection)
            throw CommandFailure("\(name) has no \(feature)")
        }
        try connection.run(
            statements + [
                Administrator.commandLine.audit(
                    .environmentChanged, name, in: id, detail: ["changed": "\(feature) removed"])
            ])
        try afterwards(id, &connection)
        print("\(name) has no \(feature) anymore")
    }
}
