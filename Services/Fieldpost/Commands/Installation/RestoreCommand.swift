import ArgumentParser
import Audit
import CommandLineSupport
import ObjectStore
import Postgres
import TenantMigration

/// `fieldpost restore`: accepts a database that may have lost transactions.
struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Accept a database after a restore or failover.",
        discussion: """
            After a restore from a backup or a failover to a standby, the last transactions may be missing. Every \
            environment gets a new generation, and positions beyond all allocated ones: devices download their realms \
            again, and all objects are republished. Entries are looked up in their back end before they are created. \
            Environments whose move to another installation was in progress are write-blocked and reported, because \
            they may have been cut over since.
            """)

    @Flag(help: "No transaction is missing (planned switch-over): keep the generation.") var nothingLost = false
    @Flag(help: "Restore although no change is detected, as for a volume snapshot.") var force = false
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
                "the database has not changed since it was accepted. After a restore that PostgreSQL cannot detect, "
                    + "such as a volume snapshot or a backup from before schema 10, give --force")
        }
        if !isUnchanged || force {
            if !nothingLost { report(try writeBlockLeaving()) }
            let subject = nothingLost ? "nothing lost" : "something may be lost"
            try connection.run(
                (nothingLost ? [] : Lineage.restore) + [
                    Lineage.accept, Administrator.commandLine.audit(.databaseRestored, subject, in: nil),
                ])
            try connection.run(Lineage.endSessions)
        }
        try show(&connection)
    }

    /// Uses a separate session with short lock timeouts and retries.
    private func writeBlockLeaving() throws -> [String] {
        var connection = try database.connect(MoveStore.limits, check: nil)
        return try MoveStore.writeBlockLeaving(on: &connection)
    }

    private func report(_ names: [String]) {
        for name in names {
            printError(
                """
                The move of \(name) to another installation was in progress; it is write-blocked. If it is active \
                there: fieldpost environment cut-over \(name), with that receipt. Otherwise: fieldpost environment \
                roll-back \(name)

                """)
        }
    }

    private func show(_ connection: inout Connection) throws {
        let rows = try connection.run("SELECT name, generation, position FROM realm.environment ORDER BY name")
            .decode(String.self, Int64.self, Int64.self)
            .map { Row(environment: $0, generation: $1, position: $2) }
        let table = Table(["ENVIRONMENT", .right("GENERATION"), .right("POSITION")], rows, empty: "no environments") {
            [$0.environment, String($0.generation), String($0.position)]
        }
        try output.show(rows, table)
    }

    private struct Row: Encodable {
        let environment: String
        let generation: Int64
        let position: Int64
    }
}
