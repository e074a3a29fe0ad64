import KindSchema
package import Model
package import Postgres

/// The kinds of an environment: the built-in ones, and those that the newest version of its schema file declares.
package struct KindCatalogue: Sendable {
    /// The version of the schema file; 0 if the environment has none.
    package let version: Int32
    /// SHA-256 of the schema file; empty if the environment has none. Environments with the same file have the same
    /// kinds.
    package let digest: Bytea
    /// The size of the schema file as JSON, in bytes.
    package let fileByteCount: Int
    private let own: [String: Kind]

    /// The catalogue before a version was loaded: without own kinds.
    package static let unloaded = KindCatalogue(version: -1)

    private init(version: Int32, digest: Bytea = Bytea([]), fileByteCount: Int = 0, own: [String: Kind] = [:]) {
        (self.version, self.digest, self.fileByteCount, self.own) = (version, digest, fileByteCount, own)
    }

    /// Returns the catalogue of an environment that has this file as another version.
    package func asVersion(_ version: Int32) -> KindCatalogue {
        KindCatalogue(version: version, digest: digest, fileByteCount: fileByteCount, own: own)
    }

    /// Returns the kind of a name; `nil` if the environment has none.
    package func kind(named name: String) -> Kind? { Kind(rawValue: name) ?? own[name] }

    /// The kinds that the environment declares, by their numbers.
    package var ownKinds: [Kind] { own.values.sorted { $0.number < $1.number } }

    /// All kinds: the built-in ones and then the others.
    package var all: [Kind] { Kind.allCases + ownKinds }

    /// Reads the numbers of all kinds that objects of an environment can have. Rows: number.
    ///
    /// - Parameter environment: A statement that is the environment's number.
    package static func numbers(in environment: Statement) -> Statement {
        """
        SELECT number FROM realm.kind WHERE number < \(OwnKind.numbers.lowerBound)
        UNION ALL
        SELECT kind FROM realm.own_kind WHERE environment_id = \(environment)
        """
    }

    /// Reads the version of an environment's schema file; 0 if it has none.
    package static func version(in environment: EnvironmentID) -> Statement {
        "SELECT coalesce(max(version), 0) FROM realm.kind_version WHERE environment_id = \(environment.rawValue)"
    }

    /// Reports a conflict for decisions that are based on another version: a precondition of a `WriteBatch`.
    package static func missOutdated(
        _ decisions: [(decision: Int32, version: Int32)], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(decisions.map(\.decision)), \(decisions.map(\.version))) AS g(decision, version)
        WHERE g.version <> (\(version(in: environment)))
        """
    }

    /// Loads the newest version.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws -> KindCatalogue {
        guard let stored = try KindVersion.newest(in: environment, on: &connection) else {
            return KindCatalogue(version: 0)
        }
        let declared = try stored.kinds
        let numbers = Dictionary(
            uniqueKeysWithValues: try connection.run(
                "SELECT name, number FROM realm.kind WHERE name = ANY (\(Array(declared.kinds.keys)))"
            ).decode(String.self, Int16.self))
        let own = declared.kinds.compactMap { name, declaration in
            numbers[name].map { (name, Kind.own(OwnKind(declaration, number: $0))) }
        }
        return KindCatalogue(
            version: stored.version, digest: stored.digest, fileByteCount: stored.content.utf8.count,
            own: Dictionary(uniqueKeysWithValues: own))
    }
}
