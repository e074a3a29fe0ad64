import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The decisions of one batch about people: what they read, in a few round trips for all, and what they write.
struct LocationWork {
    private let environment: EnvironmentID
    private let common: Int32
    private var units: [UUID: LocationUnit]
    private var ownPaths: [UUID: RealmPath] = [:]
    private var teams: [UUID: Presence] = [:]
    private var teamsThere: Set<UUID> = []
    /// The numbers of realms that are there: people's own, the managers', and of teams that people are in or were in.
    private var realms: [RealmPath: Int32] = [:]
    private var teamPaths: [String: [RealmPath]] = [:]
    private var objects: [ObjectKey: RealmObject] = [:]
    /// The positions that can be read.
    private var readable: [UUID: CanonicalJSON] = [:]
    /// What is wrong with those that cannot, and with memberships.
    private var problems: [Kind: [UUID: String]] = [:]

    init(environment: EnvironmentID, common: Int32, units: [UUID: LocationUnit]) {
        self.environment = environment
        self.common = common
        self.units = units
    }

    /// Why the object of an input is to be looked at by a person.
    func problem(of subject: EventSubject, decision: Int) -> String? {
        guard units[Membership.ids(of: subject.id).lowerBound]?.inputs.contains(decision) ?? false else { return nil }
        return problems[subject.kind]?[subject.id]
    }

    // MARK: Reading

    /// Reads all that the decisions depend on. Each statement sees at least what those before it saw: where a tombstone
    /// was found, the realm of what it ended is found as well.
    mutating func load(
        _ directory: inout RealmDirectory, _ reader: inout MembershipReader, on connection: inout Connection
    ) throws {
        let ranges = units.keys.map { Membership.ids(of: $0) }
        let first = try connection.run([
            LocationStore.presences(of: .person, among: ranges, common: common, in: environment),
            LocationStore.memberships(among: ranges, common: common, in: environment),
        ])
        for (id, position, isDeleted) in try first[0].decode(UUID.self, Int64.self, Bool.self) {
            units[Membership.ids(of: id).lowerBound]?.people[id] = Presence(position: position, isThere: !isDeleted)
        }
        var named: Set<UUID> = []
        for row in first[1] {
            guard let object = try RealmObject(row) else { continue }
            let stored = reader.read(object, in: environment)
            if case .of(_, let team) = stored { named.insert(team) }
            if case .unreadable(let problem) = stored { problems[.membership, default: [:]][object.key.id] = problem }
            units[Membership.ids(of: object.key.id).lowerBound]?.memberships[object.key.id] = (object.position, stored)
        }
        let ends = units.values.reduce(into: Set<String>()) { $0.formUnion($1.teamEnds) }
        let second = try connection.run([
            People.emails(of: units.values.flatMap(\.people.keys), in: environment),
            LocationStore.presences(of: .team, among: named.map { $0...$0 }, common: common, in: environment),
            LocationStore.teamRealms(of: ends, in: environment),
        ])
        for (id, email) in try second[0].decode(UUID.self, String.self) { ownPaths[id] = try? RealmPath.user(email) }
        for (id, position, isDeleted) in try second[1].decode(UUID.self, Int64.self, Bool.self) {
            teams[id] = Presence(position: position, isThere: !isDeleted)
            if !isDeleted { teamsThere.insert(id) }
        }
        realms = try directory.ids(
            of: Set(ownPaths.values).union([.manager]), in: environment, create: false, on: &connection)
        for (number, text) in try second[2].decode(Int32.self, String.self) {
            guard let path = RealmPath(text), case .team(let team) = path.realmClass else { continue }
            realms[path] = number
            teamPaths[Memberships.end(of: team), default: []].append(path)
        }
        let keys = units.values.flatMap { unit in
            unit.people.keys.flatMap { person in (places(of: unit) + [ownPaths[person]]).map { key(person, in: $0) } }
        }
        objects = try RealmObject.byKey(connection.run(RealmObject.load(keys.compactMap(\.self), in: environment)))
    }

    /// Where copies of these people's positions can be, by all that is known.
    private func places(of unit: LocationUnit) -> [RealmPath?] {
        [.manager] + unit.teamEnds.flatMap { teamPaths[$0] ?? [] }
    }

    private func key(_ person: UUID, in path: RealmPath?) -> ObjectKey? {
        path.flatMap { realms[$0] }.map { ObjectKey(realm: $0, kind: .location, id: person) }
    }

    /// A position under an id that is not the person's, or in a realm that is somebody else's, is nobody's.
    mutating func leaveOutForeign(_ subjects: [EventSubject]) {
        for unit in units.keys {
            units[unit]?.inputs.removeAll { index in
                subjects[index].kind == .location && ownPaths[subjects[index].id] != subjects[index].realm
            }
        }
    }

    /// Reads the people's own positions. One that cannot be read is shown to nobody.
    mutating func read(by decoder: JSONDecoder) {
        for person in units.values.flatMap(\.people.keys) {
            guard let object = key(person, in: ownPaths[person]).flatMap({ objects[$0] }) else { continue }
            do {
                guard let location = try object.decoded(as: Location.self, by: decoder) else { continue }
                guard let objection = location.objection else {
                    readable[person] = object.fields
                    continue
                }
                problems[.location, default: [:]][person] = "Location \(person.text): \(objection)"
            } catch {
                problems[.location, default: [:]][person] = error.description
            }
        }
    }

    // MARK: Writing

    /// Adds to the batch what makes the copies right. Inputs about the same people share one decision: its writes are
    /// the first one's, and all of them expect all that it was made from, so that they stand or miss together.
    mutating func write(
        _ subjects: [EventSubject], to batch: inout WriteBatch, _ directory: inout RealmDirectory,
        on connection: inout Connection
    ) throws {
        let decided = units.values.filter { !$0.inputs.isEmpty }.map { unit in
            (unit: unit, changes: unit.people.keys.map { ($0, LocationRule.changes(picture(of: $0, in: unit))) })
        }
        let missing = Set(decided.flatMap(\.changes).flatMap(\.1.keys)).filter { realms[$0] == nil }
        let made = try directory.ids(of: missing, in: environment, create: true, on: &connection)
        realms.merge(made) { $1 }
        for (unit, changes) in decided {
            var seen = seen(unit)
            for (person, changes) in changes {
                for (place, change) in changes {
                    guard let key = key(person, in: place) else { continue }
                    // In a realm that was made just now there is nothing.
                    seen[key] = objects[key]?.position ?? 0
                    switch change {
                    case .put:
                        if let position = readable[person] { batch.put(key, position, decision: unit.inputs[0]) }
                    case .delete: batch.delete(key, decision: unit.inputs[0])
                    }
                }
            }
            for decision in unit.inputs { expect(seen, of: subjects[decision], decision, &batch) }
        }
    }

    private func picture(of person: UUID, in unit: LocationUnit) -> PersonPicture {
        PersonPicture(
            isTold: readable[person] != nil, isThere: unit.people[person]?.isThere ?? false,
            memberships: unit.teams(of: person), teams: teamsThere,
            copies: places(of: unit).reduce(into: [:]) { copies, place in
                guard let place, let key = key(person, in: place) else { return }
                copies[place] = objects[key]?.fields.map { $0 == readable[person] }
            })
    }

    /// All that a decision is made from, with where it was.
    private func seen(_ unit: LocationUnit) -> [ObjectKey: Int64] {
        var seen: [ObjectKey: Int64] = [:]
        for (id, presence) in unit.people {
            seen[ObjectKey(realm: common, kind: .person, id: id)] = presence.position
            for key in (places(of: unit) + [ownPaths[id]]).compactMap({ key(id, in: $0) }) {
                seen[key] = objects[key]?.position ?? 0
            }
        }
        for (id, membership) in unit.memberships {
            seen[ObjectKey(realm: common, kind: .membership, id: id)] = membership.position
            guard case .of(_, let team) = membership.stored else { continue }
            seen[ObjectKey(realm: common, kind: .team, id: team)] = teams[team]?.position ?? 0
        }
        return seen
    }

    /// The object that the input is about comes first: the worker remembers by it what is decided already.
    private func expect(
        _ seen: [ObjectKey: Int64], of subject: EventSubject, _ decision: Int, _ batch: inout WriteBatch
    ) {
        let realm = subject.kind == .location ? realms[subject.realm] : common
        let own = realm.map { ObjectKey(realm: $0, kind: subject.kind, id: subject.id) }
        if let own { batch.expect(own, at: seen[own] ?? 0, decision: decision) }
        for (key, position) in seen where key != own { batch.expect(key, at: position, decision: decision) }
    }
}
