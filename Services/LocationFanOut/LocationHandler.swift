import Access
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Keeps the copies of people's last positions.
///
/// Whatever an event says, the person's copies are decided anew from all that they depend on. An event of a team has
/// its members decided so: their keys are parked, due now.
struct LocationHandler: Handler {
    static let schemaOldest: Int32 = 20

    private var directory = RealmDirectory()
    private var reader = MembershipReader()
    private let decoder = JSONDecoder()

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var dispositions = Array(repeating: Disposition<Never>.finished, count: inputs.count)
        // Without it there is no person.
        guard let common = try directory.id(of: .common, in: environment, create: false, on: &connection) else {
            return dispositions
        }
        var units: [UUID: LocationUnit] = [:]
        var teams: [(id: UUID, decision: Int)] = []
        for (index, input) in inputs.enumerated() {
            let id = input.subject.id
            if input.subject.kind == .team {
                teams.append((id, index))
                continue
            }
            var unit = units[Membership.ids(of: id).lowerBound, default: LocationUnit()]
            unit.inputs.append(index)
            if input.subject.kind == .membership {
                unit.memberships[id] = (0, .deleted)
            } else {
                unit.people[id] = Presence()
            }
            units[Membership.ids(of: id).lowerBound] = unit
        }
        if !teams.isEmpty { try cascade(teams, common, environment, &batch, &connection) }
        guard !units.isEmpty else { return dispositions }

        var work = LocationWork(environment: environment, common: common, units: units)
        try work.load(&directory, &reader, on: &connection)
        work.leaveOutForeign(inputs.map(\.subject))
        work.read(by: decoder)
        try work.write(inputs.map(\.subject), to: &batch, &directory, on: &connection)
        for (index, input) in inputs.enumerated() {
            if let problem = work.problem(of: input.subject, decision: index) {
                dispositions[index] = .dead(reason: problem)
            }
        }
        return dispositions
    }

    private func cascade(
        _ teams: [(id: UUID, decision: Int)], _ common: Int32, _ environment: EnvironmentID, _ batch: inout WriteBatch,
        _ connection: inout Connection
    ) throws {
        let answers = try connection.run([
            LocationStore.presences(of: .team, among: teams.map { $0.id...$0.id }, common: common, in: environment),
            Memberships.of(teams: teams, common: common, in: environment),
        ])
        var positions: [UUID: Int64] = [:]
        for (id, position, _) in try answers[0].decode(UUID.self, Int64.self, Bool.self) { positions[id] = position }
        for (id, decision) in teams {
            batch.expect(
                ObjectKey(realm: common, kind: .team, id: id), at: positions[id] ?? 0, decision: decision)
        }
        var decisions: [UUID: Set<Int>] = [:]
        for (decision, membership) in try answers[1].decode(Int32.self, UUID.self) {
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
        batch.also(LocationStore.cascade(to: members, in: environment))
        batch.parksDueKeys = true
    }
}
