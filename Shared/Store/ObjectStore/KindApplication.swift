import Essentials
package import KindSchema
package import Model
package import Postgres

/// Makes a schema file the newest version of an environment's kinds.
package struct KindApplication: Sendable {
    /// A breaking change, and the objects that it concerns.
    package struct Refusal: Error, Sendable {
        package let change: KindChange
        /// Number of existing objects of the kind.
        package let objectCount: Int64
    }

    /// The changes that cannot be made, because there are objects of their kinds.
    package struct Refusals: Error, Sendable {
        package let list: [Refusal]
    }

    /// The file is too large as JSON.
    package struct TooLarge: Error, CustomStringConvertible {
        package let bytes: Int
        package var description: String {
            "as JSON, the file has \(bytes) bytes; at most \(EnvironmentKinds.fileBytesMax) are allowed"
        }
    }

    /// Objects are being imported into the environment by the version in use.
    package struct ImportInProgress: Error, CustomStringConvertible {
        package var description: String { "an import into the environment is running; apply the file after it" }
    }

    /// The environment is being moved to another installation, or is an inactive copy.
    package struct EnvironmentMoveInProgress: Error, CustomStringConvertible {
        package var description: String { "the environment is being moved to another installation" }
    }

    private let environment: EnvironmentID
    private let content: String
    private let kinds: EnvironmentKinds
    package let changes: [KindChange]
    /// The version that this one follows; 0 if there is none.
    private let previous: Int32
    /// The environment's name.
    private let name: String
    /// The topics on which existing objects are published for the first time.
    package let newTopics: [String]

    /// Compares a schema file with the newest version.
    ///
    /// - Throws: `EnvironmentKinds.Problems`, ``TooLarge``, or ``JSONError`` if its JSON is nested too deep to be read
    ///   again.
    package init(
        _ file: SchemaValue, to environment: EnvironmentID, on connection: inout Connection
    ) throws {
        self.environment = environment
        content = file.json
        guard content.utf8.count <= EnvironmentKinds.fileBytesMax else { throw TooLarge(bytes: content.utf8.count) }
        kinds = try EnvironmentKinds(try SchemaValue(Array(content.utf8)))
        let newest = try KindVersion.newest(in: environment, on: &connection)
        previous = newest?.version ?? 0
        let old = try newest?.kinds ?? EnvironmentKinds()
        changes = old.changes(to: kinds)
        let name = try connection.run(
            "SELECT name FROM realm.environment WHERE id = \(environment.rawValue)")[0].decode(String.self)
        self.name = name
        let topics = Dictionary(
            uniqueKeysWithValues: try connection.run(
                """
                SELECT k.name, o.topic FROM realm.own_kind o JOIN realm.kind k ON k.number = o.kind
                WHERE o.environment_id = \(environment.rawValue)
                """
            ).decode(String.self, String?.self))
        newTopics = kinds.kinds.values.compactMap { kind in
            guard let topic = kind.topic.map({ Topic.ownName($0, of: name) }), let before = topics[kind.name] else {
                return nil
            }
            return before == topic ? nil : topic
        }.sorted()
        isSame = newest?.content == content
    }

    /// Whether any of the kinds is published.
    package var hasTopics: Bool { kinds.kinds.values.contains { $0.topic != nil } }

    /// Whether the file is the newest version, also in what is only for readers.
    package let isSame: Bool

    private var breaking: [String: [KindChange]] {
        Dictionary(grouping: changes.filter { $0.effect == .breaking }, by: \.kind)
    }

    /// Checks that no breaking change concerns an existing object.
    ///
    /// - Throws: ``Refusals``.
    package func check(on connection: inout Connection) throws {
        let rows = try connection.run(Self.counts(of: Array(breaking.keys), in: environment))
        try Self.refuse(breaking, try rows.decode(String.self, Int64.self))
    }

    /// Stores the version in one transaction, under the lock of the environment's counter: no writer decides by an
    /// earlier version afterwards.
    ///
    /// - Parameters:
    ///   - actor: The administrator, as in the audit log.
    ///   - also: Returns further statements of the transaction, such as a record in the audit log.
    /// - Returns: The version's number.
    /// - Throws: ``Refusals``, `KindNames.Exhausted`, ``EnvironmentMoveInProgress``, ``ImportInProgress``.
    package func commit(
        by actor: String, on connection: inout Connection, also: (Int32) -> [Statement]
    ) throws -> Int32 {
        // A first time without the lock: a refusal, which takes time to count, delays no writer.
        try check(on: &connection)
        let breaking = breaking
        let version = previous + 1
        try connection.transaction { transaction in
            let isFree = try transaction.run(
                "SELECT pg_try_advisory_xact_lock(\(Self.lockSpace), \(environment.rawValue))")[0].decode(Bool.self)
            guard isFree else { throw ImportInProgress() }
            try transaction.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE")
            let moves = try transaction.run(
                "SELECT FROM realm.move WHERE environment_id = \(environment.rawValue) AND state <> 'begun'")
            guard moves.count == 0 else { throw EnvironmentMoveInProgress() }
            if !breaking.isEmpty {
                let counts = try transaction.run(Self.counts(of: Array(breaking.keys), in: environment))
                try Self.refuse(breaking, try counts.decode(String.self, Int64.self))
            }
            _ = try KindNames.numbers(of: kinds.kinds.keys.sorted(), in: &transaction)
            let stored: Statement = """
                INSERT INTO realm.kind_version (environment_id, version, content, digest, applied_by)
                VALUES (\(environment.rawValue), \(version), \(content), sha256(convert_to(\(content), 'UTF8')),
                    \(actor))
                """
            // A kind that is not declared any more keeps its topic, for tombstones that were not published yet.
            try transaction.run([stored] + kinds.kinds.values.map(addKind) + also(version))
        }
        return version
    }

    private static let lockSpace: Int32 = 0x6B69_6E64

    /// Prevents a new version until the session ends.
    package static func hold(_ environment: EnvironmentID) -> Statement {
        "SELECT pg_advisory_lock_shared(\(lockSpace), \(environment.rawValue))"
    }

    private func addKind(_ kind: KindDeclaration) -> Statement {
        let paths = kind.fields.blobJSONPaths
        let topic = kind.topic.map { Topic.ownName($0, of: name) }
        return """
            INSERT INTO realm.own_kind AS o (environment_id, kind, topic, image_paths)
            SELECT \(environment.rawValue), number, \(topic), \(paths) FROM realm.kind WHERE name = \(kind.name)
            ON CONFLICT (environment_id, kind) DO UPDATE
            SET topic = excluded.topic, image_paths = ARRAY(
                SELECT DISTINCT p FROM unnest(o.image_paths || excluded.image_paths) AS p ORDER BY p)
            """
    }

    private static func refuse(_ breaking: [String: [KindChange]], _ counts: [(String, Int64)]) throws(Refusals) {
        let refusals = counts.filter { $0.1 > 0 }.flatMap { kind, count in
            (breaking[kind] ?? []).map { Refusal(change: $0, objectCount: count) }
        }
        guard refusals.isEmpty else { throw Refusals(list: refusals) }
    }

    /// Counts the existing objects of kinds. Rows: name, number of objects.
    private static func counts(of names: [String], in environment: EnvironmentID) -> Statement {
        """
        SELECT k.name, count(o.*) FROM realm.kind k
        LEFT JOIN realm.realm r ON r.environment_id = \(environment.rawValue)
        LEFT JOIN LATERAL (
            SELECT 1 FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = r.id AND o.kind = k.number
                AND NOT o.deleted
        ) o ON true
        WHERE k.name = ANY (\(names)) GROUP BY k.name ORDER BY k.name
        """
    }
}

extension ValueSchema {
    /// The SQL/JSON paths of the references to images and documents.
    fileprivate var blobJSONPaths: [String] {
        blobPaths.map { steps in
            steps.reduce(into: "$") { path, step in
                switch step {
                case .member(let name): path += "." + String(decoding: JSONText.string(name), as: UTF8.self)
                case .others: path += ".*"
                case .element: path += "[*]"
                }
            }
        }
    }
}
