package import Postgres

/// The versions of the database's schema that this program supports.
package enum Schema {
    /// The number of the newest file in `deploy/schema`, which a test compares.
    package static let version: Int32 = 38
    /// The oldest supported version: later files may be applied while this program runs.
    package static let oldest: Int32 = 17

    /// Verifies that this program supports the schema.
    ///
    /// - Parameter oldest: The oldest supported version.
    package static func check(on connection: inout Connection, oldest: Int32 = Schema.oldest) throws {
        let isMigrated = try connection.run("SELECT to_regclass('realm.migration') IS NOT NULL")[0].decode(Bool.self)
        let actual: Int32 =
            isMigrated
            ? try connection.run("SELECT coalesce(max(number), 0) FROM realm.migration")[0].decode(Int32.self) : 0
        if actual < oldest { throw SchemaMismatch(actual: actual, advice: "run: fieldpost migrate") }
        if actual > version { throw SchemaMismatch(actual: actual, advice: "run a newer version of this program") }
    }
}

/// The error for a database whose schema this program does not support.
package struct SchemaMismatch: Error, CustomStringConvertible {
    let actual: Int32
    let advice: String
    package var description: String {
        "the database has schema \(actual), this program requires schema \(Schema.version); \(advice)"
    }
}
