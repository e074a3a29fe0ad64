import ArgumentParser
import Audit
import CommandLineSupport
import Foundation
import ObjectStore
import Postgres
import TenantMigration

/// `fieldpost restore`: lets the services work on a database that PostgreSQL may have cut short.
struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Go on with a database that was restored, or has failed over.",
        discussion: """
            After a backup was restored, or a standby took over, the last transactions may be missing. Every \
            environment gets a new generation, and positions beyond all that was ever handed out: devices download \
            their realms anew, and everything is published again. Entries are looked up in their back end before they \
            are created. Environments that were just being moved away are held, and told: they may have left since.
            """)

    @Flag(help: "Nothing is missing, as after a planned switch-over: accept the database as it is.")
    var nothingLost = false
    @Flag(help: "Do it although PostgreSQL cannot tell that anything happened, as with a volume's snapshot.")
    var force = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if nothingLost, force { throw ValidationError("--nothing-lost and --force exclude each other") }
    }

    func run() throws {
        var connection = try database.connect(check: nil)
        try Schema.check(on: &connection)
        let isUnchanged = try connection.run(Lineage.isUnchanged)[0].decode(Bool.self)
        if isUnchanged, !nothingLost, !force {
            throw CommandFailure(
                "this is the database that the services know. After a restore that PostgreSQL cannot tell of, such as "
                    + "that of a volume's snapshot or from before schema 10, give --force")
        }
        if !isUnchanged || force {
            if !nothingLost { tell(of: try holdLeaving()) }
            let subject = nothingLost ? "nothing lost" : "something may be lost"
            try connection.run(
                (nothingLost ? [] : Lineage.restore) + [
                    Lineage.accept, Administrator.commandLine.audit(.databaseRestored, subject, in: nil),
                ])
            try connection.run(Lineage.endSessions)
        }
        try show(&connection)
    }

    /// On a session of its own: locks are waited for briefly there, and again.
    private func holdLeaving() throws -> [String] {
        var connection = try database.connect(MoveStore.limits, check: nil)
        return try MoveStore.holdLeaving(on: &connection)
    }

    private func tell(of names: [String]) {
        for name in names {
            FileHandle.standardError.write(
                Data(
                    """
                    \(name) was being moved to another installation, and is held. If it works there: fieldpost \
                    environment leave, with the receipt of then. If it does not: fieldpost environment take-back \(name)

                    """.utf8))
        }
    }

    private func show(_ connection: inout Connection) throws {
        let rows = try connection.run("SELECT name, generation, position FROM realm.environment ORDER BY name")
            .decode(String.self, Int64.self, Int64.self)
            .map { Row(environment: $0, generation: $1, position: $2) }
        var table = Table(
            [("ENVIRONMENT", .left), ("GENERATION", .right), ("POSITION", .right)], empty: "no environments")
        for row in rows { table.add([row.environment, String(row.generation), String(row.position)]) }
        try output.show(rows, table)
    }

    private struct Row: Encodable {
        let environment: String
        let generation: Int64
        let position: Int64
    }
}
