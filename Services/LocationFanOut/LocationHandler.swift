import Access
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Maintains the copies of people's last locations.
///
/// Each event recomputes the person's copies from current data. An event of a team requests this for its members, by
/// due keys.
struct LocationHandler: Handler {
    private var directory = RealmDirectory()
    private var reader = MembershipReader()
    private let decoder = JSONDecoder()

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var dispositions = Array(repeating: Disposition<Never>.finished, count: inputs.count)
        // Without `/common` there is no person.
        guard let common = try directory.id(of: .common, in: environment, create: false, on: &connection) else {
            return dispositions
        }
        var groups: [UUID: LocationGroup] = [:]
        var teams: [(id: UUID, decision: Int)] = []
        for (index, input) in inputs.enumerated() {
            let id = input.subject.id
            if input.subject.kind == .team {
                teams.append((id, index))
                continue
            }
            var group = groups[Membership.ids(of: id).lowerBound, default: LocationGroup()]
            group.inputs.append(index)
            if input.subject.kind == .membership {
                group.memberships[id] = (0, .deleted)
            } else {
                group.people[id] = Presence()
            }
            groups[Membership.ids(of: id).lowerBound] = group
        }
        if !teams.isEmpty { try cascade(teams, common, environment, &batch, &connection) }
        guard !groups.isEmpty else { return dispositions }

        var locations = LocationBatch(environment: environment, common: common, groups: groups)
        try locations.load(&directory, &reader, on: &connection)
        locations.excludeForeignLocations(inputs.map(\.subject))
        locations.decodeLocations(by: decoder)
        try locations.write(inputs.map(\.subject), to: &batch, &directory, on: &connection)
        for (index, input) in inputs.enumerated() {
            if let error = locations.error(of: input.subject, decision: index) {
                dispositions[index] = .deadLettered(reason: error)
            }
        }
        return dispositions
    }

    private func cascade(
        _ teams: [(id: UUID, decision: Int)], _ common: Int32, _ environment: EnvironmentID, _ batch: inout WriteBatch,
        _ connection: inout Connection
    ) throws {
        let results = try connection.run([
            LocationStore.presences(of: .team, among: teams.map { $0.id...$0.id }, common: common, in: environment),
            Memberships.of(teams: teams, common: common, in: environment),
        ])
        var positions: [UUID: Int64] = [:]
        for (id, position, _) in try results[0].decode(UUID.self, Int64.self, Bool.self) { positions[id] = position }
        for (id, decision) in teams {
            batch.expect(ObjectKey(realm: common, kind: .team, id: id), at: positions[id] ?? 0, decision: decision)
        }
        var decisions: [UUID: Set<Int>] = [:]
        for (decision, membership) in try results[1].decode(Int32.self, UUID.self) {
            decisions[Membership.ids(of: membership).lowerBound, default: []].insert(Int(decision))
        }
        guard !decisions.isEmpty else { return }
        let people = try connection.run(
            People.emails(among: decisions.keys.map { Membership.ids(of: $0) }, in: environment))
        var members: [(subject: EventSubject, decision: Int)] = []
        for (person, email) in try people.decode(UUID.self, String.self) {
            guard let path = try? RealmPath.user(email) else { continue }
            let subject = EventSubject(realm: path, kind: .location, id: person)
            for decision in decisions[Membership.ids(of: person).lowerBound] ?? [] {
                members.append((subject, decision))
            }
        }
        batch.append(LocationStore.cascade(to: members, in: environment))
        batch.defersDueKeys = true
    }
}
