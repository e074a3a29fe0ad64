import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What is stored of a polled person, as far as a comparison needs it: of the entries and of what was seen of them,
/// those of the days that were read, and those whose records were found. An object that does not decode is written
/// anew.
struct StoredPerson {
    let own: Int32
    let seenRealm: Int32
    var user: User?
    /// The object whose fields ``user`` has.
    private(set) var userObject: RealmObject?
    var contexts: [UUID: ReportingContext] = [:]
    var templates: [UUID: ReportingTemplate] = [:]
    /// Copies of nodes that can no longer be chosen.
    var retired: [UUID: ReportingTreeNode] = [:]
    /// Choices that somebody else put there, an integration or a person: they are not Fieldpost's to remove.
    private(set) var others: Set<UUID> = []
    var seen: [UUID: SeenRecord] = [:]
    /// Whether the tree that was read is stored.
    var isTreeKnown = false
    /// Nothing here is newer than this position, unless it was written while it was loaded.
    private(set) var newest: Int64 = 0
    private var entries: [UUID: (entry: TimeEntry, position: Int64, editPosition: Int64)] = [:]

    /// The nodes that entries select, of whatever day.
    private(set) var selectedNodes: Set<UUID> = []

    /// - Parameters:
    ///   - days: The days whose records were read.
    ///   - found: The entries whose records were found.
    init(
        _ own: Int32, _ seen: Int32, _ days: ClosedRange<Day>, _ found: Set<UUID>, _ tree: NodeTree,
        _ environment: EnvironmentID, _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws {
        (self.own, seenRealm) = (own, seen)
        let window = Window(environment: environment, own: own, seen: seen, days: days, found: Array(found))
        let answers = try connection.run([
            Self.newest(own: own, seen: seen, in: environment), window.entries, window.seenRecords,
            RealmObject.load(kinds: Self.choices, realm: own, in: environment), window.selectedNodes,
            AudienceStore.stored([tree.digest], in: environment),
        ])
        newest = try answers[0][0].decode(Int64.self)
        for answer in answers[1...3] {
            for row in answer {
                if let object = try RealmObject(row) { add(object, decoder) }
            }
        }
        for node in try answers[4].decode(String?.self).compactMap(\.self) {
            if let node = UUID(ascii: node) { selectedNodes.insert(node) }
        }
        isTreeKnown = answers[5].count > 0
    }

    private static let choices: [Kind] = [.user, .reportingContext, .reportingTemplate, .reportingTreeNode]
    /// All that a comparison looks at.
    static let kinds = choices + [.timeEntry, .seenRecord]

    /// The newest position of what is stored, tombstones too. Rows: position.
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
        // One that does not decode waits for a person in the submitter.
        case .timeEntry:
            if let entry = try? object.timeEntry(by: decoder) {
                entries[id] = (entry, object.position, object.editPosition)
            }
        case .seenRecord: seen[id] = try? object.seenRecord(by: decoder)
        default: break  // Not asked for.
        }
    }

    /// The entries that nobody has changed since a poll was written, and so since it was read for.
    func entries(before position: Int64) -> [UUID: TimeEntry] {
        entries.filter { $0.value.position < position }.mapValues(\.entry)
    }

    /// Entries that were made of a record when what it is about was not in the catalogue yet, and now may be.
    func unresolved(in data: ReportingData) -> Set<UUID> {
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

/// The statements that read a person's entries, and what was seen of them. PostgreSQL passes over the others, which are
/// neither sent nor decoded.
private struct Window {
    let environment: EnvironmentID
    let own: Int32
    let seen: Int32
    let days: ClosedRange<Day>
    let found: [UUID]

    /// Rows: as `RealmObject` reads them.
    var entries: Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(own)
            AND kind = \(Kind.timeEntry) AND NOT deleted
            AND ((fields::json->>'entryDate') COLLATE "C" BETWEEN \(first) AND \(last) OR id = ANY (\(found)))
        """
    }

    /// A record may be of another day than its entry. Rows: as `RealmObject` reads them.
    var seenRecords: Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(seen)
            AND kind = \(Kind.seenRecord) AND NOT deleted
            AND ((fields::json->>'day') COLLATE "C" BETWEEN \(first) AND \(last) OR id = ANY (\(found))
                OR id IN (
                    SELECT id FROM store.object
                    WHERE environment_id = \(environment.rawValue) AND realm_id = \(own)
                        AND kind = \(Kind.timeEntry) AND NOT deleted
                        AND (fields::json->>'entryDate') COLLATE "C" BETWEEN \(first) AND \(last)))
        """
    }

    /// What entries of any day select: when it can no longer be chosen, they go on saying it. Rows: node.
    var selectedNodes: Statement {
        """
        SELECT DISTINCT s->>'node' FROM store.object o
        CROSS JOIN LATERAL json_array_elements(
            CASE json_typeof(o.fields::json->'reporting') WHEN 'array' THEN o.fields::json->'reporting' ELSE '[]' END) s
        WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(own)
            AND o.kind = \(Kind.timeEntry) AND NOT o.deleted
        """
    }

    /// Days as text are in their order.
    private var first: String { days.lowerBound.description }
    private var last: String { days.upperBound.description }
}
