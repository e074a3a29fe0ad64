internal import FoundationEssentials
package import Model
internal import ObjectStore
package import Postgres
package import Secrets

/// The end of a move: the old place lets the environment go, and then the new one begins.
///
/// Each needs the other's word. So at no time do both work: the old place has left, for good, before its word is there.
package enum MoveBeginning {
    /// Lets an environment go.
    ///
    /// - Parameters:
    ///   - receipt: The new place's word that all of it is there.
    ///   - url: Where its devices find it.
    /// - Returns: The word with which the new place may begin. Asked again, it is said again.
    package static func leave(
        _ name: String, receipt: String, to url: String?, transfer: SecretBox, also audit: (EnvironmentID) -> Statement,
        on connection: inout Connection
    ) throws -> String {
        guard let move = try MoveStore.find(name, on: &connection), move.state == .held || move.state == .left else {
            throw MoveFailure("\(name) is not held: export it before")
        }
        guard transfer.hasWritten("whole", of: move, as: receipt) else {
            throw MoveFailure("this is not the receipt of this move, or the transfer key is another one")
        }
        if move.state == .held {
            try MoveStore.markLeft(move, to: url, also: audit(move.environment), on: &connection)
        }
        return try transfer.word("left", of: move)
    }

    /// The environment works here from now on: in one transaction, which makes its logins, gives it its counter in a
    /// new generation, and so has every routed object published.
    ///
    /// - Parameter permission: The old place's word that it has let it go.
    package static func begin(
        _ name: String, permission: String, secrets: SecretBox, transfer: SecretBox,
        also audit: (EnvironmentID) -> Statement, on connection: inout Connection
    ) throws {
        try MoveStore.lockArriving(name, on: &connection)
        guard let move = try MoveStore.find(name, on: &connection), move.state == .whole else {
            throw MoveFailure("\(name) is not here as a whole, or has begun")
        }
        guard transfer.hasWritten("left", of: move, as: permission) else {
            throw MoveFailure("this is not the word of the old place for this move, or the transfer key is another one")
        }
        let environment = move.environment.rawValue
        try connection.transaction { transaction in
            // Whoever looked at it here before it begins knew nothing.
            try transaction.run("DELETE FROM pipeline.parked WHERE environment_id = \(environment)")
            var last: Int32 = 0
            while let part = try transaction.run(
                """
                SELECT number, table_name, lines FROM realm.move_part
                WHERE environment_id = \(environment) AND number > \(last) ORDER BY number LIMIT 1
                """
            ).first {
                let (number, table, lines) = try part.decode(Int32.self, String.self, String.self)
                last = number
                try transaction.run(try statement(table, lines, of: move, secrets, transfer))
            }
            try transaction.run(counters(environment) + [audit(move.environment)])
        }
    }

    /// What puts staged rows into their table.
    private static func statement(
        _ table: String, _ lines: String, of move: MoveStore.Move, _ secrets: SecretBox, _ transfer: SecretBox
    ) throws -> Statement {
        if let table = MovedTable.named(table) {
            return EnvironmentImport.insert(
                "[" + lines.split(separator: "\n").joined(separator: ",") + "]", into: table, of: move)
        }
        guard case .secret(let secret) = try JSONDecoder().decode(MoveLine.self, from: Data(lines.utf8)),
            let sort = SecretStore.Sort(rawValue: secret.sort)
        else { throw MoveFailure("what arrived has a part '\(table)', which nothing is known of here") }
        let place = SecretStore.place(sort, number: secret.number, person: secret.person, on: move.id)
        return try SecretStore.replace(
            Bytea(Array(secret.stored)), by: transfer.open(Array(secret.sealed), at: place), sort,
            number: secret.number, person: secret.person, of: move.environment, with: secrets)
    }

    /// Numbers that came with the rows are not given again: what is numbered here begins beyond them. Its change log
    /// stayed at the old place, so no pointer leads to anything up to its position. It may have begun here before, in a
    /// history that was lost: its generation and its next positions are beyond that too.
    private static func counters(_ environment: Int32) -> [Statement] {
        let sequences: [Statement] = ["realm.realm", "access.person", "access.integration", "onboarding.refresh_token"]
            .map { (table: Statement) in
                """
                SELECT setval(s.name, greatest(m.id, (SELECT last_value FROM pg_sequences
                    WHERE (schemaname || '.' || sequencename) = s.name)))
                FROM (SELECT pg_get_serial_sequence('\(table)', 'id') AS name) s,
                    (SELECT max(id)::bigint AS id FROM \(table) WHERE environment_id = \(environment)) m
                WHERE m.id IS NOT NULL
                """
            }
        return sequences + [
            """
            UPDATE realm.environment e SET generation = greatest(m.generation, e.generation),
                position = greatest(m.position, e.position), compacted_position = m.position
            FROM realm.move m WHERE m.environment_id = e.id AND e.id = \(environment)
            """,
            """
            UPDATE realm.environment SET generation = \(Lineage.nextGeneration), position = \(Lineage.nextPosition)
            WHERE id = \(environment)
            """,
            "DELETE FROM realm.move_part WHERE environment_id = \(environment)",
            "UPDATE realm.move SET state = 'begun', changed_at = now() WHERE environment_id = \(environment)",
        ]
    }
}
