package import Postgres

/// The versions of the database's schema that this program can work with.
package enum Schema {
    /// The number of the newest file in `deploy/schema`. A test compares them.
    package static let version: Int32 = 30
    /// The oldest version that will do: what follows it may be applied while this program runs.
    package static let oldest: Int32 = 17

    /// Refuses to run on a schema that this program does not know.
    ///
    /// - Parameter oldest: The oldest version that will do.
    package static func check(on connection: inout Connection, oldest: Int32 = Schema.oldest) throws {
        let isMigrated = try connection.run("SELECT to_regclass('realm.migration') IS NOT NULL")[0].decode(Bool.self)
        let found: Int32 =
            isMigrated
            ? try connection.run("SELECT coalesce(max(number), 0) FROM realm.migration")[0].decode(Int32.self) : 0
        if found < oldest { throw SchemaMismatch(found: found, advice: "run: fieldpost migrate") }
        if found > version { throw SchemaMismatch(found: found, advice: "run a newer version of this program") }
    }
}

/// The database's schema is not the one this program was made for.
package struct SchemaMismatch: Error, CustomStringConvertible {
    let found: Int32
    let advice: String
    package var description: String {
        "the database has schema \(found), this program was made for schema \(Schema.version); \(advice)"
    }
}
