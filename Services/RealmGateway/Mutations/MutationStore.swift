import Access
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `device.client` and `device.mutation`, and the writes of `device.task_author`.
struct MutationStore {
    let environment: EnvironmentID
    let storedResultCountMax: Int64

    // MARK: Reading

    /// Loads the state for a batch's decisions, except permissions, in one round trip.
    ///
    /// - Parameter realms: The numbers of the permitted realms; mutations of others are rejected.
    func load(
        _ requests: [MutationRequest], realms: [RealmPath: Int32], on connection: inout Connection
    ) throws -> BatchState {
        var targets: [ObjectKey: TargetKey] = [:]
        /// Entries that may be deleted with their log lines.
        var deletable: Set<ObjectKey> = []
        for request in requests {
            for (path, change) in request.writes.map({ ($0.realm, $0.mutation) }) {
                for reference in change.requiredReferences {
                    let target = TargetKey(reference, from: path)
                    guard let realm = realms[target.realm] else { continue }
                    targets[ObjectKey(realm: realm, kind: target.kind, id: target.id)] = target
                }
                guard let realm = realms[path] else { continue }
                let key = ObjectKey(realm: realm, kind: change.kind, id: change.id)
                targets[key] = TargetKey(realm: path, kind: change.kind, id: change.id)
                if change.kind == .timeEntry, change.operation == .delete { deletable.insert(key) }
            }
        }
        var statements = [
            EnvironmentCounter.load(environment), clients(requests), storedResults(requests),
            RealmObject.load(targets.keys, in: environment),
        ]
        let base = statements.count
        if !deletable.isEmpty {
            statements.append(
                RealmObject.statusLines(of: deletable.map(\.id), realms: deletable.map(\.realm), in: environment))
        }
        let namesTeams = requests.contains(where: \.namesTeams)
        if namesTeams { statements.append(TeamNames.load(realms[.common] ?? 0, in: environment)) }
        let dependsOnKinds = requests.contains { $0.kindsVersion != nil }
        if dependsOnKinds { statements.append(KindCatalogue.version(in: environment)) }
        var results = try connection.run(statements)
        var state = BatchState()
        if dependsOnKinds { state.kindsVersion = try results.removeLast()[0].decode(Int32.self) }
        if results[0].count == 1 { state.position = try EnvironmentCounter(results[0][0]).position }
        for (caller, client, next) in try results[1].decode(Int32.self, UUID.self, Int64.self) {
            state.nextSequences[ClientKey(caller: caller, client: client)] = next
        }
        for row in results[2] { try Self.read(row, into: &state) }
        for (key, object) in try RealmObject.byKey(results[3]) {
            guard let target = targets[key] else { continue }
            let stored: StoredObject = object.fields.map { .live(fields: $0.bytes) } ?? .tombstone
            state.targets[target] = BatchState.Target(position: object.position, object: stored)
        }
        if namesTeams, let rows = results.last { state.teamNames = try TeamNames(rows) }
        let lines = results[base..<(deletable.isEmpty ? base : base + 1)]
        for (entry, line) in try lines.flatMap({ try $0.map(RealmObject.statusLine) }) {
            let key = ObjectKey(realm: line.realm, kind: .timeEntry, id: entry)
            if deletable.contains(key) { state.lines[key, default: []].append(line) }
        }
        return state
    }

    private static func read(_ row: Row, into state: inout BatchState) throws(PostgresError) {
        var columns = row.columns
        let client = ClientKey(caller: try columns.next(), client: try columns.next())
        let sequence: Int64 = try columns.next()
        let result: MutationResult
        if let position = try columns.next(Int64?.self) {
            result = .success(position)
        } else {
            result = .failure(Rejection(problem: try columns.next(JSONBytes.self).bytes))
        }
        state.storedResults[client, default: [:]][sequence] = result
    }

    private func clients(_ requests: [MutationRequest]) -> Statement {
        """
        SELECT c.person_id, c.client_id, c.next_sequence
        FROM unnest(\(requests.map(\.caller.id)), \(requests.map(\.clientID))) AS r(person_id, client_id)
        CROSS JOIN LATERAL (
            SELECT * FROM device.client c
            WHERE c.environment_id = \(environment.rawValue) AND c.person_id = r.person_id
                AND c.client_id = r.client_id
            OFFSET 0
        ) c
        """
    }

    private func storedResults(_ requests: [MutationRequest]) -> Statement {
        """
        SELECT m.person_id, m.client_id, m.sequence, m.position, m.problem
        FROM unnest(\(requests.map(\.caller.id)), \(requests.map(\.clientID)),
            \(requests.map { $0.mutations.first?.sequence ?? 1 }), \(requests.map { $0.mutations.last?.sequence ?? 0 }))
            AS r(person_id, client_id, first, last)
        CROSS JOIN LATERAL (
            SELECT * FROM device.mutation m
            WHERE m.environment_id = \(environment.rawValue) AND m.person_id = r.person_id
                AND m.client_id = r.client_id AND m.sequence BETWEEN r.first AND r.last
            OFFSET 0
        ) m
        """
    }

    // MARK: Writing

    /// Reports a conflict for the decisions whose clients' sequences have advanced since they were loaded.
    func checkSequences(_ clients: [SequenceAdvance]) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(clients.map(\.key.caller)), \(clients.map(\.key.client)), \(clients.map(\.expected)),
            \(clients.map(\.decision))) AS g(person_id, client_id, expected, decision)
        LEFT JOIN LATERAL (
            SELECT c.next_sequence FROM device.client c
            WHERE c.environment_id = \(environment.rawValue) AND c.person_id = g.person_id
                AND c.client_id = g.client_id
            OFFSET 0
        ) c ON true
        WHERE coalesce(c.next_sequence, 1) <> g.expected
        """
    }

    func advance(_ clients: [SequenceAdvance]) -> Statement {
        """
        INSERT INTO device.client AS c (environment_id, person_id, client_id, next_sequence)
        SELECT \(environment.rawValue), i.person_id, i.client_id, i.next_sequence
        FROM unnest(\(clients.map(\.key.caller)), \(clients.map(\.key.client)), \(clients.map(\.next)),
            \(clients.map(\.decision))) AS i(person_id, client_id, next_sequence, decision)
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id, person_id, client_id) DO UPDATE SET
            next_sequence = excluded.next_sequence, changed_at = excluded.changed_at
        """
    }

    /// Stores the results. An accepted mutation gets its object's position after this transaction.
    func insert(_ rows: MutationResultRows) -> Statement {
        """
        INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position, problem)
        SELECT \(environment.rawValue), i.person_id, i.client_id, i.sequence,
            CASE WHEN i.problem IS NULL THEN coalesce(o.position, i.position) END, i.problem
        FROM unnest(\(rows.persons), \(rows.clients), \(rows.sequences), \(rows.decisions),
            \(rows.objects.realms), \(rows.objects.kinds), \(rows.objects.ids),
            \(rows.positions), \(rows.problems))
            AS i(person_id, client_id, sequence, decision, realm_id, kind, id, position, problem)
        LEFT JOIN LATERAL (
            SELECT o.position FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id
                AND o.kind = i.kind AND o.id = i.id
            OFFSET 0
        ) o ON true
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Stores the authors of tasks until `task-fan-out` has processed their changes. Several authors are none: each of
    /// them is notified of the others' changes.
    func record(_ authors: TaskAuthorRows, manager: Int32) -> Statement {
        """
        INSERT INTO device.task_author AS a (environment_id, task_id, edit_position, author_id)
        SELECT \(environment.rawValue), i.task_id, o.edit_position, i.author_id
        FROM unnest(\(authors.tasks), \(authors.authors), \(authors.decisions)) AS i(task_id, author_id, decision)
        CROSS JOIN LATERAL (
            SELECT o.edit_position FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(manager)
                AND o.kind = \(Kind.fieldTask) AND o.id = i.task_id
            OFFSET 0
        ) o
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ON CONFLICT (environment_id, task_id) DO UPDATE SET
            edit_position = excluded.edit_position,
            author_id = CASE WHEN a.author_id = excluded.author_id THEN excluded.author_id END
        """
    }

    /// Deletes the results of each client except the last `storedResultCountMax`.
    func deleteExpiredResults(_ clients: [SequenceAdvance]) -> Statement {
        """
        DELETE FROM device.mutation WHERE ctid = ANY (ARRAY(
            SELECT m.ctid
            FROM unnest(\(clients.map(\.key.caller)), \(clients.map(\.key.client)),
                \(clients.map { $0.next - 1 - storedResultCountMax })) AS i(person_id, client_id, last)
            CROSS JOIN LATERAL (
                SELECT m.ctid FROM device.mutation m
                WHERE m.environment_id = \(environment.rawValue) AND m.person_id = i.person_id
                    AND m.client_id = i.client_id AND m.sequence <= i.last
                OFFSET 0
            ) m))
        """
    }
}

/// A client's next sequence before and after a transaction.
struct SequenceAdvance {
    let key: ClientKey
    let expected: Int64
    let next: Int64
    let decision: Int32
}

/// The rows of `device.task_author` that a transaction writes.
struct TaskAuthorRows {
    fileprivate var tasks = BinaryArray(of: UUID.self)
    fileprivate var authors = BinaryArray(of: UUID.self)
    fileprivate var decisions = BinaryArray(of: Int32.self)

    var count: Int32 { tasks.count }

    /// - Parameter author: The author's `Person`; `nil`: an integration.
    mutating func append(_ task: UUID, by author: UUID?, _ decision: Int32) {
        tasks.append(task)
        authors.append(author)
        decisions.append(decision)
    }
}

/// The rows of `device.mutation` that a transaction adds.
struct MutationResultRows {
    fileprivate var persons = BinaryArray(of: Int32.self)
    fileprivate var clients = BinaryArray(of: UUID.self)
    fileprivate var sequences = BinaryArray(of: Int64.self)
    fileprivate var decisions = BinaryArray(of: Int32.self)
    fileprivate var objects = ObjectKeyColumns()
    fileprivate var positions = BinaryArray(of: Int64.self)
    fileprivate var problems = BinaryArray(of: JSONBytes.self)

    private mutating func append(_ client: ClientKey, _ sequence: Int64, _ decision: Int32) {
        persons.append(client.caller)
        clients.append(client.client)
        sequences.append(sequence)
        decisions.append(decision)
    }

    /// - Parameter position: The result's position if the object does not exist.
    mutating func accept(
        _ client: ClientKey, _ sequence: Int64, decision: Int32, object: ObjectKey, unchangedPosition position: Int64
    ) {
        append(client, sequence, decision)
        objects.append(object)
        positions.append(position)
        problems.appendNull()
    }

    mutating func reject(_ client: ClientKey, _ sequence: Int64, decision: Int32, _ rejection: Rejection) {
        append(client, sequence, decision)
        objects.append(nil)
        positions.appendNull()
        problems.append(JSONBytes(rejection.problem))
    }
}
