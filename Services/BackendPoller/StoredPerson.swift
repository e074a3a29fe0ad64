import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The stored objects of a polled person that a comparison needs. Entries and observations are limited to the days that
/// were read and the records that were found. An undecodable object is omitted, and so written again.
struct StoredPerson {
    let own: Int32
    let seenRealm: Int32
    var user: User?
    /// The object of ``user``.
    private(set) var userObject: RealmObject?
    var contexts: [UUID: ReportingContext] = [:]
    var templates: [UUID: ReportingTemplate] = [:]
    /// Copies of nodes that can no longer be selected.
    var retired: [UUID: ReportingTreeNode] = [:]
    /// Choices that an integration or a person created: Fieldpost does not remove them.
    private(set) var others: Set<UUID> = []
    var seen: [UUID: SeenRecord] = [:]
    private var seenPositions: [UUID: Int64] = [:]
    /// Whether the tree that was read is already stored.
    var isTreeKnown = false
    /// The newest position of the objects, unless they were written during loading.
    private(set) var newest: Int64 = 0
    private var entries: [UUID: (entry: TimeEntry, position: Int64, editPosition: Int64)] = [:]

    /// The nodes that entries of any day select.
    private(set) var selectedNodes: Set<UUID> = []

    /// - Parameters:
    ///   - days: The days whose records were read.
    ///   - found: The entries of the records that were read.
    init(
        _ own: Int32, _ seen: Int32, _ days: ClosedRange<Day>, _ found: Set<UUID>, _ tree: NodeTree,
        _ environment: EnvironmentID, _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws {
        (self.own, seenRealm) = (own, seen)
        let window = Window(environment: environment, own: own, seen: seen, days: days, found: Array(found))
        let results = try connection.run([
            Self.newest(own: own, seen: seen, in: environment), window.entries, window.seenRecords,
            RealmObject.load(kinds: Self.choices, realm: own, in: environment),
            AudienceStore.stored([tree.digest], in: environment),
        ])
        newest = try results[0][0].decode(Int64.self)
        for rows in results[1...3] {
            for row in rows {
                if let object = try RealmObject(row) { add(object, decoder) }
            }
        }
        isTreeKnown = results[4].count > 0
        let rest = try connection.run(window.selectedNodes(except: Array(entries.keys)))
        for node in try rest.decode(String?.self).compactMap(\.self) {
            if let node = UUID(ascii: node) { selectedNodes.insert(node) }
        }
    }

    private static let choices: [Kind] = [.user, .reportingContext, .reportingTemplate, .reportingTreeNode]
    /// All kinds that a comparison depends on.
    static let kinds = choices + [.timeEntry, .seenRecord]

    /// Selects the newest position of the objects, including tombstones. Rows: position.
    private static func newest(own: Int32, seen: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT coalesce(max(o.position), 0) FROM unnest(\([own, seen])) AS r(id) CROSS JOIN LATERAL (
            SELECT position FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = ANY (\(kinds))
            OFFSET 0
        ) o
        """
    }

    private mutating func add(_ object: RealmObject, _ decoder: JSONDecoder) {
        let id = object.key.id
        if object.editPosition > 0, Self.choices.contains(object.key.kind) { others.insert(id) }
        switch object.key.kind {
        case .user: (user, userObject) = (try? object.decoded(as: User.self, by: decoder), object)
        case .reportingContext: contexts[id] = try? object.decoded(as: ReportingContext.self, by: decoder)
        case .reportingTemplate: templates[id] = try? object.decoded(as: ReportingTemplate.self, by: decoder)
        case .reportingTreeNode: retired[id] = try? object.decoded(as: ReportingTreeNode.self, by: decoder)
        // An undecodable entry is dead-lettered by the submitter.
        case .timeEntry:
            if let entry = try? object.decodedDirectly(as: TimeEntry.self, by: decoder) {
                entries[id] = (entry, object.position, object.editPosition)
                for selection in entry.reporting { selectedNodes.insert(selection.node) }
            }
        case .seenRecord:
            seen[id] = try? object.decodedDirectly(as: SeenRecord.self, by: decoder)
            seenPositions[id] = object.position
        default: break  // Not requested.
        }
    }

    /// Returns the entries that were not changed since the poll was written, and so since its read.
    func entries(before position: Int64) -> [UUID: TimeEntry] {
        entries.filter { $0.value.position < position }.mapValues(\.entry)
    }

    /// Returns entries whose record is reported again although it equals its observation.
    func repeated(in data: ReportingData) -> Set<UUID> {
        unresolved(in: data).union(changedBack(in: data))
    }

    /// Returns entries that changed since their record was observed and differ from that observation.
    ///
    /// A record that equals it nevertheless may have been changed by Fieldpost and then changed back in the back end.
    private func changedBack(in data: ReportingData) -> Set<UUID> {
        let changed = entries.filter { id, stored in seenPositions[id].map { $0 < stored.position } ?? false }
        guard !changed.isEmpty else { return [] }
        let lookup = ReportingData.Lookup(data)
        return Set(
            changed.keys.filter { id in
                guard let record = seen[id], let entry = entries[id]?.entry else { return false }
                return record.day != entry.entryDate || record.text ?? "" != entry.text ?? ""
                    || Hours(seconds: record.durationSeconds) != Hours(seconds: entry.seconds ?? 0)
                    || !Set(lookup.meaning(of: record.references).selections).isSubset(of: entry.reporting)
            })
    }

    /// Returns entries that were created from a record with unresolvable references, which can be resolved now.
    private func unresolved(in data: ReportingData) -> Set<UUID> {
        let open = entries.filter { $0.value.editPosition == 0 && $0.value.entry.reporting.isEmpty }
        guard !open.isEmpty else { return [] }
        let lookup = ReportingData.Lookup(data)
        return Set(
            open.keys.filter { id in
                guard let references = seen[id]?.references, !references.isEmpty else { return false }
                return !lookup.meaning(of: references).selections.isEmpty
            })
    }
}

/// The statements that select a person's entries and observations. PostgreSQL filters them, so that others are neither
/// sent nor decoded.
///
/// Ids are compared first, since parsing fields takes longer. The ids are a subquery, which is hashed: `= ANY` would
/// search them linearly for each object.
private struct Window {
    let environment: EnvironmentID
    let own: Int32
    let seen: Int32
    let days: ClosedRange<Day>
    let found: [UUID]

    /// Rows: as decoded by `RealmObject`.
    var entries: Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(own)
            AND kind = \(Kind.timeEntry) AND NOT deleted
            AND (id IN (SELECT unnest(\(found)))
                OR (fields::json->>'entryDate') COLLATE "C" BETWEEN \(first) AND \(last))
        """
    }

    /// A record may be on another day than its entry. Rows: as decoded by `RealmObject`.
    var seenRecords: Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(seen)
            AND kind = \(Kind.seenRecord) AND NOT deleted
            AND (id IN (SELECT unnest(\(found))) OR (fields::json->>'day') COLLATE "C" BETWEEN \(first) AND \(last)
                OR id IN (
                    SELECT id FROM store.object
                    WHERE environment_id = \(environment.rawValue) AND realm_id = \(own)
                        AND kind = \(Kind.timeEntry) AND NOT deleted AND id NOT IN (SELECT unnest(\(found)))
                        AND (fields::json->>'entryDate') COLLATE "C" BETWEEN \(first) AND \(last)))
        """
    }

    /// Selects the nodes of other entries of any day. Rows: node.
    ///
    /// - Parameter decoded: The entries whose nodes are known.
    func selectedNodes(except decoded: [UUID]) -> Statement {
        """
        SELECT DISTINCT s->>'node' FROM store.object o
        CROSS JOIN LATERAL json_array_elements(
            CASE json_typeof(o.fields::json->'reporting') WHEN 'array' THEN o.fields::json->'reporting' ELSE '[]' END) s
        WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(own)
            AND o.kind = \(Kind.timeEntry) AND NOT o.deleted AND o.id NOT IN (SELECT unnest(\(decoded)))
        """
    }

    /// Days are compared as text, which preserves their order.
    private var first: String { days.lowerBound.description }
    private var last: String { days.upperBound.description }
}
