import Essentials
package import FoundationEssentials
package import Model
package import Postgres

/// The key of an object: its realm, kind and id.
package struct ObjectKey: Hashable, Sendable {
    package var realm: Int32
    package var kind: Kind
    package var id: UUID

    package init(realm: Int32, kind: Kind, id: UUID) {
        self.realm = realm
        self.kind = kind
        self.id = id
    }
}

/// A stored object. A tombstone has no fields.
package struct RealmObject: Sendable, Equatable {
    package var key: ObjectKey
    /// The position of its last change.
    package var position: Int64
    /// The position of the last change by a device or integration, not by a service.
    package var editPosition: Int64
    package var fields: CanonicalJSON?

    package var isDeleted: Bool { fields == nil }

    /// Reads the columns realm_id, kind, id, position, edit_position, fields, starting at `firstColumn`.
    ///
    /// - Returns: `nil` if this program version does not have the kind: a newer service wrote it.
    package init?(_ row: Row, firstColumn: Int = 0) throws(PostgresError) {
        guard let kind = Kind(number: try row.value(firstColumn + 1)) else { return nil }
        key = ObjectKey(realm: try row.value(firstColumn), kind: kind, id: try row.value(firstColumn + 2))
        position = try row.value(firstColumn + 3)
        editPosition = try row.value(firstColumn + 4)
        fields = try row.optional(firstColumn + 5)
    }
}

extension RealmObject {
    /// Reads objects by their keys. Rows: realm_id, kind, id, position, edit_position, fields.
    package static func load(_ keys: some Sequence<ObjectKey>, in environment: EnvironmentID) -> Statement {
        select("o.edit_position, o.fields", of: keys, in: environment)
    }

    /// Reads objects by their keys. Rows: realm_id, kind, id, position, and these columns of `o`.
    fileprivate static func select(
        _ columns: Statement, of keys: some Sequence<ObjectKey>, in environment: EnvironmentID
    ) -> Statement {
        var keyColumns = ObjectKeyColumns()
        for key in keys { keyColumns.append(key) }
        return """
            SELECT o.realm_id, o.kind, o.id, o.position, \(columns)
            FROM unnest(\(keyColumns.realms), \(keyColumns.kinds), \(keyColumns.ids)) AS k(realm_id, kind, id)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = k.realm_id
                    AND o.kind = k.kind AND o.id = k.id
                OFFSET 0
            ) o
            """
    }

    /// Reads the keys of entries' status log lines; only for deleted entries, because it scans all lines of the realms.
    /// Rows: see ``statusLine(_:)``.
    package static func statusLines(
        of entries: some Sequence<UUID>, realms: [Int32], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT (o.fields::json->>'entry')::uuid, o.realm_id, o.id
        FROM (SELECT DISTINCT id FROM unnest(\(realms)) AS r(id)) r CROSS JOIN LATERAL (
            SELECT realm_id, id, fields FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.timeEntryStatus) AND NOT deleted
                AND lower(fields::json->>'entry') = ANY (\(entries.map(\.text)))
            OFFSET 0
        ) o
        """
    }

    package static func statusLine(_ row: Row) throws(PostgresError) -> (entry: UUID, line: ObjectKey) {
        let (entry, realm, id) = try row.decode(UUID.self, Int32.self, UUID.self)
        return (entry, ObjectKey(realm: realm, kind: .timeEntryStatus, id: id))
    }

    /// Reads all objects of some kinds in a realm, without tombstones.
    package static func load(
        kinds: [Kind], realm: Int32, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND kind = ANY (\(kinds)) AND NOT deleted
        """
    }

    /// Reads all objects of a kind in several realms, without tombstones.
    package static func load(
        _ kind: Kind, realms: some Sequence<Int32>, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT o.realm_id, o.kind, o.id, o.position, o.edit_position, o.fields
        FROM unnest(\(Array(Set(realms)))) AS r(id) CROSS JOIN LATERAL (
            SELECT * FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id AND kind = \(kind) AND NOT deleted
            OFFSET 0
        ) o
        """
    }

    /// Returns the rows of a `load` statement by key.
    package static func byKey(_ rows: Rows) throws(PostgresError) -> [ObjectKey: RealmObject] {
        var objects: [ObjectKey: RealmObject] = [:]
        objects.reserveCapacity(rows.count)
        for row in rows {
            if let object = try RealmObject(row) { objects[object.key] = object }
        }
        return objects
    }
}

/// An object's position, and whether it exists.
package struct Presence: Equatable, Sendable {
    /// 0 if there is neither an object nor a tombstone.
    package var position: Int64 = 0
    package var isThere = false

    package init(position: Int64 = 0, isThere: Bool = false) {
        self.position = position
        self.isThere = isThere
    }

    /// Reads the columns position and deleted, which are null if there is no row.
    package init(_ columns: inout Columns) throws(PostgresError) {
        position = try columns.optional(Int64.self) ?? 0
        isThere = try columns.optional(Bool.self) == false
    }

    /// Reads the positions of objects without their fields. Rows: realm_id, kind, id, position, deleted.
    package static func load(_ keys: some Sequence<ObjectKey>, in environment: EnvironmentID) -> Statement {
        RealmObject.select("o.deleted", of: keys, in: environment)
    }

    /// Returns the rows of a `load` statement by key.
    package static func byKey(_ rows: Rows) throws(PostgresError) -> [ObjectKey: Presence] {
        var presences: [ObjectKey: Presence] = [:]
        for row in rows {
            var columns = row.columns
            let (realm, kind): (Int32, Int16) = (try columns.next(), try columns.next())
            let id: UUID = try columns.next()
            guard let kind = Kind(number: kind) else { continue }
            presences[ObjectKey(realm: realm, kind: kind, id: id)] = try Presence(&columns)
        }
        return presences
    }
}
