import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Writes entries into realms as the gateway does for a device, and reads them. For one thread.
///
/// Unavailable components are retried: every write is idempotent.
struct RealmWriter: ~Copyable {
    private var connection: Connection
    private var directory = RealmDirectory()
    let environment: EnvironmentID

    init(_ conninfo: String, environment name: String = SmallOrganisation.environment) throws {
        var connection = try Connection(conninfo)
        let rows = try connection.run("SELECT id FROM realm.environment WHERE name = \(name)")
        environment = EnvironmentID(rawValue: try rows[0].value(0))
        self.connection = connection
    }

    /// Retries `body` while PostgreSQL is unavailable.
    private mutating func patiently<Success>(_ body: (inout Connection) throws -> Success) throws -> Success {
        let deadline = ContinuousClock.now + .seconds(300)
        while true {
            do {
                return try body(&connection)
            } catch let error as PostgresError where error.isRetriable && .now < deadline {
                continue  // the connection waits before it opens again
            }
        }
    }

    // MARK: Reading

    mutating func initializedCount() throws -> Int {
        let (environment, users) = (environment.rawValue, RealmPath.users.description)
        return try patiently {
            Int(
                try $0.run(
                    """
                    SELECT count(*) FROM realm.object o
                    JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                    WHERE o.environment_id = \(environment) AND r.path = \(users) AND o.kind = 'Realms'
                        AND (o.fields->>'isInitialized')::boolean
                    """)[0].value(0, as: Int64.self))
        }
    }

    /// A person's choices for reporting.
    mutating func choices(of email: String) throws -> Choices {
        let realm = try number(of: try RealmPath.user(email))
        let own = try objects([.reportingTemplate, .reportingContext, .user], in: realm)
        let decoder = JSONDecoder()
        func all<Fields: Decodable>(_ kind: Kind, _ objects: [RealmObject], as: Fields.Type) throws -> [UUID: Fields] {
            var found: [UUID: Fields] = [:]
            for object in objects where object.key.kind == kind {
                guard let fields = object.fields else { continue }
                found[object.key.id] = try decoder.decode(Fields.self, from: Data(fields.bytes))
            }
            return found
        }
        let templates = try all(.reportingTemplate, own, as: ReportingTemplate.self)
        let contexts = try all(.reportingContext, own, as: ReportingContext.self)
        guard let template = templates.keys.first,
            let catalogue = try all(.user, own, as: User.self).values.first?.catalogue
        else { throw Missing(what: "a template or a catalogue of \(email)") }
        let nodes = try all(
            .reportingTreeNode, objects([.reportingTreeNode], in: number(of: .catalogue(catalogue))),
            as: ReportingTreeNode.self)
        func context(of node: UUID) -> UUID? {
            let root = nodes[node]?.parent
            return contexts.first { $0.value.sections.contains { $0.rootNode == root && root != nil } }?.key
        }
        var selections: [(reporting: [ReportingSelection], element: String)] = []
        for (id, node) in nodes {
            guard let element = node.referenceId, element.contains("."), let project = node.dependencies.first,
                let customer = nodes[project]?.dependencies.first
            else { continue }
            let reporting = [customer, project, id].compactMap { node in
                context(of: node).map { ReportingSelection(context: $0, node: node) }
            }
            selections.append((reporting, element))
        }
        return Choices(template: template, selections: selections.sorted { $0.element < $1.element })
    }

    struct Missing: Error {
        let what: String
    }

    private mutating func objects(_ kinds: [Kind], in realm: Int32) throws -> [RealmObject] {
        let environment = environment
        return try patiently {
            Array(try RealmObject.byKey($0.run(RealmObject.load(kinds: kinds, realm: realm, in: environment))).values)
        }
    }

    private mutating func number(of path: RealmPath) throws -> Int32 {
        var directory = directory
        let environment = environment
        let id = try patiently { try directory.id(of: path, in: environment, create: true, on: &$0) }
        self.directory = directory
        guard let id else { throw Missing(what: "the realm \(path)") }
        return id
    }

    // MARK: Writing

    mutating func put(_ id: UUID, of email: String, _ entry: TimeEntry) throws {
        try put(id, of: email, json: try CanonicalJSON(encoding: entry))
    }

    mutating func put(_ id: UUID, of email: String, json: CanonicalJSON) throws {
        try write(id, email) { $0.put($1, json, decision: 0, isEdit: true) }
    }

    /// Writes an entry under many ids, all at once.
    mutating func put(_ ids: [UUID], of email: String, _ entry: TimeEntry) throws {
        let realm = try number(of: try RealmPath.user(email))
        let json = try CanonicalJSON(encoding: entry)
        var batch = WriteBatch(environment: environment)
        for id in ids {
            batch.put(ObjectKey(realm: realm, kind: .timeEntry, id: id), json, decision: 0, isEdit: true)
        }
        try patiently { _ = try batch.commit(on: &$0) }
    }

    mutating func edit(_ id: UUID, of email: String, _ entry: TimeEntry) throws {
        let text = #"{"text":"\#(entry.text ?? "")","durationSeconds":\#(entry.durationSeconds ?? 0)}"#
        try patch(id, email, text)
    }

    mutating func requestDeletion(_ id: UUID, of email: String) throws {
        try patch(id, email, #"{"deleteRequested":true}"#)
    }

    /// Retries while services change the entry.
    private mutating func patch(_ id: UUID, _ email: String, _ fields: String) throws {
        let key = ObjectKey(realm: try number(of: try RealmPath.user(email)), kind: .timeEntry, id: id)
        let environment = environment
        var isWritten = false
        while !isWritten {
            try patiently { connection in
                var batch = WriteBatch(environment: environment)
                let rows = try connection.run(RealmObject.load([key], in: environment))
                guard let stored = try RealmObject.byKey(rows)[key] else { return }
                try batch.patch(stored, CanonicalJSON(fields), decision: 0, isEdit: true)
                isWritten = try batch.commit(on: &connection).conflicts.isEmpty
            }
        }
    }

    private mutating func write(
        _ id: UUID, _ email: String, _ add: (inout WriteBatch, ObjectKey) -> Void
    ) throws {
        let key = ObjectKey(realm: try number(of: try RealmPath.user(email)), kind: .timeEntry, id: id)
        var batch = WriteBatch(environment: environment)
        add(&batch, key)
        try patiently { _ = try batch.commit(on: &$0) }
    }

    // MARK: At the end

    /// The number of entries with a status, of all people or of one.
    mutating func count(_ status: EntryStatus, of email: String? = nil) throws -> Int {
        let (environment, path) = (environment.rawValue, try email.map { try RealmPath.user($0).description })
        return try patiently {
            Int(
                try $0.run(
                    """
                    SELECT count(*) FROM realm.object o
                    JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                    WHERE o.environment_id = \(environment) AND o.kind = 'TimeEntry' AND NOT o.deleted
                        AND o.fields->>'status' = \(status.rawValue) AND (\(path) IS NULL OR r.path = \(path))
                    """)[0].value(0, as: Int64.self))
        }
    }

    /// The number of unfinished entries: all except those whose current state is released, and deleted ones.
    mutating func unfinished(_ plans: [PlannedEntry]) throws -> [String] {
        let objects = try entries(plans)
        let settled = try settledPositions()
        return plans.compactMap { plan in
            guard let object = objects[plan.id] else { return "\(plan.id.text) is not there" }
            guard let expected = plan.expected else {
                return object.isDeleted ? nil : "\(plan.id.text) is not deleted"
            }
            guard let fields = object.fields,
                let entry = try? JSONDecoder().decode(TimeEntry.self, from: Data(fields.bytes))
            else { return "\(plan.id.text) is gone" }
            guard let position = settled[plan.id], position >= object.editPosition else {
                return "\(plan.id.text) is not settled: \(entry.status)"
            }
            guard entry.status == .released, entry.backendId != nil, entry.text == expected.text,
                entry.durationSeconds == expected.durationSeconds
            else { return "\(plan.id.text) is \(entry.status) with \(entry.text ?? "no text")" }
            return nil
        }
    }

    private mutating func entries(_ plans: [PlannedEntry]) throws -> [UUID: RealmObject] {
        var keys: [ObjectKey] = []
        for plan in plans {
            let realm = try number(of: try RealmPath.user(plan.person.email))
            keys.append(ObjectKey(realm: realm, kind: .timeEntry, id: plan.id))
        }
        let environment = environment
        let objects = try patiently { try RealmObject.byKey($0.run(RealmObject.load(keys, in: environment))) }
        return Dictionary(objects.values.map { ($0.key.id, $0) }) { first, _ in first }
    }

    private mutating func settledPositions() throws -> [UUID: Int64] {
        let environment = environment.rawValue
        return try patiently { connection in
            var found: [UUID: Int64] = [:]
            let rows = try connection.run(
                """
                SELECT entry_id, edit_position FROM submission.ledger
                WHERE environment_id = \(environment) AND phase = 'settled'
                """)
            for row in rows { found[try row.value(0)] = try row.value(1) }
            return found
        }
    }

    /// Dead-lettered keys, with their reasons.
    mutating func dead() throws -> [String] {
        try patiently { connection in
            try connection.run("SELECT key || ': ' || reason FROM pipeline.parked WHERE is_dead")
                .map { try $0.value(0, as: String.self) }
        }
    }
}
