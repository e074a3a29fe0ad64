package import Model
package import Postgres

/// Secrets of an environment that moves to an installation with other keys.
extension SecretStore {
    /// A decrypted secret and the key of its row.
    package struct Moving {
        package let number: Int64
        package let person: Int32
        /// The sealed secret in the source's row, which is copied unchanged to the target.
        package let stored: Bytea
        package let secret: [UInt8]

        /// Returns the context of the secret in transit, where it is sealed with the transfer's key.
        package func place(_ sort: Sort, on move: String) -> String {
            SecretStore.place(sort, number: number, person: person, on: move)
        }
    }

    /// Returns the context of a secret in transit.
    package static func place(_ sort: Sort, number: Int64, person: Int32, on move: String) -> String {
        "move/\(move)/\(sort.rawValue)/\(number)/\(person)"
    }

    /// Decrypts an environment's secrets of one category and passes each to `body`.
    ///
    /// - Throws: `SecretBox.Failure` if a secret cannot be opened: the environment would not work at the target.
    package static func forEachSecret(
        _ sort: Sort, of environment: EnvironmentID, with secrets: SecretBox, on connection: inout Connection,
        _ body: (Moving) throws -> Void
    ) throws {
        try forEachPage(of: sort, in: environment, on: &connection) { page, _ in
            for stored in page {
                let secret = try secrets.open(stored.sealed.bytes, at: stored.context(sort))
                try body(
                    Moving(number: stored.number, person: stored.person, stored: stored.sealed, secret: secret))
            }
        }
    }

    /// Returns the statement that replaces a row's copied secret by one that is sealed with the local keys.
    package static func replace(
        _ stored: Bytea, by secret: [UInt8], _ sort: Sort, number: Int64, person: Int32,
        of environment: EnvironmentID, with secrets: SecretBox
    ) throws -> Statement {
        let row = Stored(environment: environment, number: number, person: person, sealed: stored)
        return save(sort, [(row, Bytea(try secrets.seal(secret, at: row.context(sort))))])
    }
}
