internal import FoundationEssentials
package import Model
internal import ObjectStore
package import Postgres
package import Secrets

/// The end of a move: the cut-over at the source, then the activation at the destination.
///
/// The cut-over requires the destination's receipt, and the activation requires the source's token. So the environment
/// is never active at both: the source is cut over permanently before the token exists.
package enum MoveActivation {
    /// Cuts an environment over to another installation.
    ///
    /// - Parameters:
    ///   - receipt: The destination's receipt that everything arrived.
    ///   - url: The base URL to which devices are redirected.
    /// - Returns: The activation token. A repeated call returns it again.
    package static func cutOver(
        _ name: String, receipt: String, to url: String?, transfer: SecretBox, also audit: (EnvironmentID) -> Statement,
        on connection: inout Connection
    ) throws -> String {
        guard let move = try MoveStore.find(name, on: &connection), move.state == .held || move.state == .left else {
            throw MoveFailure("\(name) is not write-blocked: export it first")
        }
        guard transfer.isToken(receipt, for: "whole", of: move) else {
            throw MoveFailure("the receipt is not of this move, or the transfer key differs")
        }
        if move.state == .held {
            try MoveStore.markCutOver(move, to: url, also: audit(move.environment), on: &connection)
        }
        return try transfer.token("left", of: move)
    }

    /// Activates the environment in one transaction, which creates its logins, sets its counter in a new generation,
    /// and so republishes all objects of published kinds.
    ///
    /// - Parameter token: The activation token of the source.
    package static func activate(
        _ name: String, token: String, secrets: SecretBox, transfer: SecretBox,
        also audit: (EnvironmentID) -> Statement, on connection: inout Connection
    ) throws {
        try MoveStore.lockArriving(name, on: &connection)
        guard let move = try MoveStore.find(name, on: &connection), move.state == .whole else {
            throw MoveFailure("\(name) has no complete, inactive copy here")
        }
        guard transfer.isToken(token, for: "left", of: move) else {
            throw MoveFailure("the activation token is not of this move, or the transfer key differs")
        }
        let environment = move.environment.rawValue
        try connection.transaction { transaction in
            // Removes keys deferred here before the activation.
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

    /// Returns the statement that inserts staged rows into their table.
    private static func statement(
        _ table: String, _ lines: String, of move: MoveStore.Move, _ secrets: SecretBox, _ transfer: SecretBox
    ) throws -> Statement {
        if let table = MovedTable.named(table) {
            return EnvironmentImport.insert(
                "[" + lines.split(separator: "\n").joined(separator: ",") + "]", into: table, of: move)
        }
        guard case .secret(let secret) = try JSONDecoder().decode(MoveLine.self, from: Data(lines.utf8)),
            let sort = SecretStore.Sort(rawValue: secret.sort)
        else { throw MoveFailure("the copy has a part '\(table)', which is unknown here") }
        let context = SecretStore.place(sort, number: secret.number, person: secret.person, on: move.id)
        return try SecretStore.replace(
            Bytea(Array(secret.stored)), by: transfer.open(Array(secret.sealed), at: context), sort,
            number: secret.number, person: secret.person, of: move.environment, with: secrets)
    }

    /// Statements that advance sequences and counters beyond the imported numbers. The change log stayed at the source,
    /// so no pointer refers to positions up to the move's. If the environment was active here before, in a lost
    /// timeline, its generation and positions are beyond that too.
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
