import Access
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres

/// The SQL of `device.client` and `device.mutation`.
struct MutationStore {
    let environment: EnvironmentID
    let answersKeptMax: Int64

    // MARK: Reading

    /// Everything a batch is decided from but permissions, in one round trip.
    ///
    /// - Parameter realms: The numbers of the realms that are written to; the others are not permitted.
    func load(
        _ requests: [MutationRequest], realms: [RealmPath: Int32], on connection: inout Connection
    ) throws -> LoadedState {
        var targets: [ObjectKey: TargetKey] = [:]
        /// Entries that may go with their lines.
        var going: Set<ObjectKey> = []
        for request in requests {
            for case .change(let path, let change) in request.mutations.map(\.intent) {
                if let common = realms[.common] {
                    for reference in change.requiredReferences {
                        targets[ObjectKey(realm: common, kind: reference.kind, id: reference.id)] = TargetKey(reference)
                    }
                }
                guard let realm = realms[path] else { continue }
                let key = ObjectKey(realm: realm, kind: change.kind, id: change.id)
                targets[key] = TargetKey(realm: path, kind: change.kind, id: change.id)
                if change.kind == .timeEntry, change.operation == .delete { going.insert(key) }
            }
        }
        var statements = [
            EnvironmentCounter.load(environment), clients(requests), earlierAnswers(requests),
            RealmObject.load(targets.keys, in: environment),
        ]
        let base = statements.count
        if !going.isEmpty {
            statements.append(
                RealmObject.statusLines(of: going.map(\.id), realms: going.map(\.realm), in: environment))
        }
        let namesTeams = requests.contains(where: \.namesTeams)
        if namesTeams { statements.append(TeamNames.load(realms[.common] ?? 0, in: environment)) }
        let answers = try connection.run(statements)
        var state = LoadedState()
        if answers[0].count == 1 { state.position = try EnvironmentCounter(answers[0][0]).position }
        for (caller, client, next) in try answers[1].decode(Int32.self, UUID.self, Int64.self) {
            state.nextSequences[ClientKey(caller: caller, client: client)] = next
        }
        for row in answers[2] { try Self.read(row, into: &state) }
        for (key, object) in try RealmObject.byKey(answers[3]) {
            guard let target = targets[key] else { continue }
            let stored: StoredObject = object.fields.map { .live(fields: $0.bytes) } ?? .tombstone
            state.targets[target] = LoadedState.Target(position: object.position, object: stored)
        }
        if namesTeams, let rows = answers.last { state.teamNames = try TeamNames(rows) }
        let lines = answers[base..<(going.isEmpty ? base : base + 1)]
        for (entry, line) in try lines.flatMap({ try $0.map(RealmObject.statusLine) }) {
            let key = ObjectKey(realm: line.realm, kind: .timeEntry, id: entry)
            if going.contains(key) { state.lines[key, default: []].append(line) }
        }
        return state
    }

    private static func read(_ row: Row, into state: inout LoadedState) throws(PostgresError) {
        var columns = row.columns
        let client = ClientKey(caller: try columns.next(), client: try columns.next())
        let sequence: Int64 = try columns.next()
        let answer: MutationAnswer
        if let position = try columns.next(Int64?.self) {
            answer = .accepted(position: position)
        } else {
            answer = .rejected(Rejection(problem: try columns.next(JSONBytes.self).bytes))
        }
        state.answers[client, default: [:]][sequence] = answer
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

    private func earlierAnswers(_ requests: [MutationRequest]) -> Statement {
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

    /// Misses the decisions whose clients have gone on since they were loaded.
    func guardStatement(_ clients: [(key: ClientKey, expected: Int64, decision: Int32)]) -> Statement {
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

    func advance(_ clients: [(key: ClientKey, next: Int64, decision: Int32)]) -> Statement {
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

    /// Keeps the answers. That of an accepted mutation is its object's position as this transaction leaves it.
    func keep(_ answers: KeptAnswers) -> Statement {
        """
        INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position, problem)
        SELECT \(environment.rawValue), i.person_id, i.client_id, i.sequence,
            CASE WHEN i.problem IS NULL THEN coalesce(o.position, i.position) END, i.problem
        FROM unnest(\(answers.persons), \(answers.clients), \(answers.sequences), \(answers.decisions),
            \(answers.objects.realms), \(answers.objects.kinds), \(answers.objects.ids),
            \(answers.positions), \(answers.problems))
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

    /// Removes answers so old that no client repeats them.
    func forget(_ clients: [(key: ClientKey, next: Int64)]) -> Statement {
        """
        DELETE FROM device.mutation WHERE ctid = ANY (ARRAY(
            SELECT m.ctid
            FROM unnest(\(clients.map(\.key.caller)), \(clients.map(\.key.client)),
                \(clients.map { $0.next - 1 - answersKeptMax })) AS i(person_id, client_id, last)
            CROSS JOIN LATERAL (
                SELECT m.ctid FROM device.mutation m
                WHERE m.environment_id = \(environment.rawValue) AND m.person_id = i.person_id
                    AND m.client_id = i.client_id AND m.sequence <= i.last
                OFFSET 0
            ) m))
        """
    }
}

/// The rows of `device.mutation` that a transaction adds.
struct KeptAnswers {
    fileprivate var persons = BinaryArray(of: Int32.self)
    fileprivate var clients = BinaryArray(of: UUID.self)
    fileprivate var sequences = BinaryArray(of: Int64.self)
    fileprivate var decisions = BinaryArray(of: Int32.self)
    fileprivate var objects = ObjectKeyColumns()
    fileprivate var positions = BinaryArray(of: Int64.self)
    fileprivate var problems = BinaryArray(of: JSONBytes.self)

    var isEmpty: Bool { persons.count == 0 }

    private mutating func append(_ client: ClientKey, _ sequence: Int64, _ decision: Int32) {
        persons.append(client.caller)
        clients.append(client.client)
        sequences.append(sequence)
        decisions.append(decision)
    }

    /// - Parameter position: What counts when there is no such object.
    mutating func accept(
        _ client: ClientKey, _ sequence: Int64, decision: Int32, object: ObjectKey, otherwise position: Int64
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
