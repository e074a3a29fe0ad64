package import Model
package import Postgres

/// Secrets of an environment that moves to an installation with other keys.
extension SecretStore {
    /// A secret, opened, with what its row holds.
    package struct Moving {
        package let number: Int64
        package let person: Int32
        /// As it is in its row, which the other installation gets as it is.
        package let stored: Bytea
        package let secret: [UInt8]

        /// What it is sealed for on its way, with the key of the move.
        package func place(_ sort: Sort, on move: String) -> String {
            SecretStore.place(sort, number: number, person: person, on: move)
        }
    }

    package static func place(_ sort: Sort, number: Int64, person: Int32, on move: String) -> String {
        "move/\(move)/\(sort.rawValue)/\(number)/\(person)"
    }

    /// Opens an environment's secrets of a sort, one after the other.
    ///
    /// - Throws: `SecretBox.Failure` for one that no key opens: without it the environment would not work elsewhere.
    package static func forEachSecret(
        _ sort: Sort, of environment: EnvironmentID, with secrets: SecretBox, on connection: inout Connection,
        _ body: (Moving) throws -> Void
    ) throws {
        try forEachPage(of: sort, in: environment, on: &connection) { page, _ in
            for stored in page {
                let secret = try secrets.open(stored.sealed.bytes, at: stored.place(sort))
                try body(
                    Moving(number: stored.number, person: stored.person, stored: stored.sealed, secret: secret))
            }
        }
    }

    /// The statement that puts a secret in the place of what its row came with, sealed with the keys of here.
    package static func replace(
        _ stored: Bytea, by secret: [UInt8], _ sort: Sort, number: Int64, person: Int32,
        of environment: EnvironmentID, with secrets: SecretBox
    ) throws -> Statement {
        let row = Stored(environment: environment, number: number, person: person, sealed: stored)
        return save(sort, [(row, Bytea(try secrets.seal(secret, at: row.place(sort))))])
    }
}
