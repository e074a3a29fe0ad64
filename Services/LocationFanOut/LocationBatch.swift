import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The decisions of one batch: loads their state in a few round trips for all people, and writes the changes.
struct LocationBatch {
    private let environment: EnvironmentID
    private let common: Int32
    private var groups: [UUID: LocationGroup]
    private var ownPaths: [UUID: RealmPath] = [:]
    private var teams: [UUID: Presence] = [:]
    private var existingTeams: Set<UUID> = []
    /// The numbers of existing realms: people's own, the managers', and those of teams that people are or were in.
    private var realms: [RealmPath: Int32] = [:]
    private var teamPaths: [String: [RealmPath]] = [:]
    private var objects: [ObjectKey: RealmObject] = [:]
    /// The valid locations.
    private var readableLocations: [UUID: CanonicalJSON] = [:]
    /// The errors of invalid locations and memberships.
    private var errors: [Kind: [UUID: String]] = [:]

    init(environment: EnvironmentID, common: Int32, groups: [UUID: LocationGroup]) {
        self.environment = environment
        self.common = common
        self.groups = groups
    }

    /// Returns the reason why an input's object is dead-lettered; `nil`: it is valid.
    func error(of subject: EventSubject, decision: Int) -> String? {
        guard groups[Membership.ids(of: subject.id).lowerBound]?.inputs.contains(decision) ?? false else { return nil }
        return errors[subject.kind]?[subject.id]
    }

    // MARK: Reading

    /// Loads the state of the decisions. Each statement sees at least what the earlier ones saw: if a tombstone is
    /// found, the realm of the deleted object's copy is found, too.
    mutating func load(
        _ directory: inout RealmDirectory, _ reader: inout MembershipReader, on connection: inout Connection
    ) throws {
        let ranges = groups.keys.map { Membership.ids(of: $0) }
        let first = try connection.run([
            LocationStore.presences(of: .person, among: ranges, common: common, in: environment),
            LocationStore.memberships(among: ranges, common: common, in: environment),
        ])
        for (id, position, isDeleted) in try first[0].decode(UUID.self, Int64.self, Bool.self) {
            groups[Membership.ids(of: id).lowerBound]?.people[id] = Presence(position: position, isThere: !isDeleted)
        }
        var named: Set<UUID> = []
        for row in first[1] {
            guard let object = try RealmObject(row) else { continue }
            let stored = reader.read(object, in: environment)
            if case .of(_, let team) = stored { named.insert(team) }
            if case .unreadable(let error) = stored { errors[.membership, default: [:]][object.key.id] = error }
            groups[Membership.ids(of: object.key.id).lowerBound]?.memberships[object.key.id] = (object.position, stored)
        }
        let ends = groups.values.reduce(into: Set<String>()) { $0.formUnion($1.teamEnds) }
        let second = try connection.run([
            People.emails(of: groups.values.flatMap(\.people.keys), in: environment),
            LocationStore.presences(of: .team, among: named.map { $0...$0 }, common: common, in: environment),
            LocationStore.teamRealms(of: ends, in: environment),
        ])
        for (id, email) in try second[0].decode(UUID.self, String.self) { ownPaths[id] = try? RealmPath.user(email) }
        for (id, position, isDeleted) in try second[1].decode(UUID.self, Int64.self, Bool.self) {
            teams[id] = Presence(position: position, isThere: !isDeleted)
            if !isDeleted { existingTeams.insert(id) }
        }
        realms = try directory.ids(
            of: Set(ownPaths.values).union([.manager]), in: environment, create: false, on: &connection)
        for (number, text) in try second[2].decode(Int32.self, String.self) {
            guard let path = RealmPath(text), case .team(let team) = path.realmClass else { continue }
            realms[path] = number
            teamPaths[Memberships.end(of: team), default: []].append(path)
        }
        let keys = groups.values.flatMap { group in
            group.people.keys.flatMap { person in (paths(of: group) + [ownPaths[person]]).map { key(person, in: $0) } }
        }
        objects = try RealmObject.byKey(connection.run(RealmObject.load(keys.compactMap(\.self), in: environment)))
    }

    /// Returns all possible realms of copies of these people's locations.
    private func paths(of group: LocationGroup) -> [RealmPath?] {
        [.manager] + group.teamEnds.flatMap { teamPaths[$0] ?? [] }
    }

    private func key(_ person: UUID, in path: RealmPath?) -> ObjectKey? {
        path.flatMap { realms[$0] }.map { ObjectKey(realm: $0, kind: .location, id: person) }
    }

    /// Removes inputs about locations under an id that is not the realm's person's: they count for no person.
    mutating func excludeForeignLocations(_ subjects: [EventSubject]) {
        for group in groups.keys {
            groups[group]?.inputs.removeAll { index in
                subjects[index].kind == .location && ownPaths[subjects[index].id] != subjects[index].realm
            }
        }
    }

    /// Decodes the people's own locations. An invalid one has no copies.
    mutating func decodeLocations(by decoder: JSONDecoder) {
        for person in groups.values.flatMap(\.people.keys) {
            guard let object = key(person, in: ownPaths[person]).flatMap({ objects[$0] }) else { continue }
            do {
                guard let location = try object.decoded(as: Location.self, by: decoder) else { continue }
                guard let reason = location.objection else {
                    readableLocations[person] = object.fields
                    continue
                }
                errors[.location, default: [:]][person] = "Location \(person.text): \(reason)"
            } catch {
                errors[.location, default: [:]][person] = error.description
            }
        }
    }

    // MARK: Writing

    /// Adds the changes of the copies to the batch. Inputs about the same people share one decision: the first input
    /// writes, and all inputs have all preconditions, so that they commit or conflict together.
    mutating func write(
        _ subjects: [EventSubject], to batch: inout WriteBatch, _ directory: inout RealmDirectory,
        on connection: inout Connection
    ) throws {
        let decisions = groups.values.filter { !$0.inputs.isEmpty }.map { group in
            (group: group, changes: group.people.keys.map { ($0, LocationRule.changes(snapshot(of: $0, in: group))) })
        }
        let missing = Set(decisions.flatMap(\.changes).flatMap(\.1.keys)).filter { realms[$0] == nil }
        let created = try directory.ids(of: missing, in: environment, create: true, on: &connection)
        realms.merge(created) { $1 }
        for (group, changes) in decisions {
            var preconditions = preconditions(of: group)
            for (person, changes) in changes {
                for (path, change) in changes {
                    guard let key = key(person, in: path) else { continue }
                    // A realm that was just created is empty.
                    preconditions[key] = objects[key]?.position ?? 0
                    switch change {
                    case .put:
                        if let location = readableLocations[person] {
                            batch.put(key, location, decision: group.inputs[0])
                        }
                    case .delete: batch.delete(key, decision: group.inputs[0])
                    }
                }
            }
            for decision in group.inputs { expect(preconditions, of: subjects[decision], decision, &batch) }
        }
    }

    private func snapshot(of person: UUID, in group: LocationGroup) -> PersonSnapshot {
        PersonSnapshot(
            hasLocation: readableLocations[person] != nil, exists: group.people[person]?.isThere ?? false,
            memberships: group.teams(of: person), teams: existingTeams,
            copies: paths(of: group).reduce(into: [:]) { copies, path in
                guard let path, let key = key(person, in: path) else { return }
                copies[path] = objects[key]?.fields.map { $0 == readableLocations[person] }
            })
    }

    /// Returns the objects that a decision is based on, with their positions.
    private func preconditions(of group: LocationGroup) -> [ObjectKey: Int64] {
        var preconditions: [ObjectKey: Int64] = [:]
        for (id, presence) in group.people {
            preconditions[ObjectKey(realm: common, kind: .person, id: id)] = presence.position
            for key in (paths(of: group) + [ownPaths[id]]).compactMap({ key(id, in: $0) }) {
                preconditions[key] = objects[key]?.position ?? 0
            }
        }
        for (id, membership) in group.memberships {
            preconditions[ObjectKey(realm: common, kind: .membership, id: id)] = membership.position
            guard case .of(_, let team) = membership.stored else { continue }
            preconditions[ObjectKey(realm: common, kind: .team, id: team)] = teams[team]?.position ?? 0
        }
        return preconditions
    }

    /// The input's own object is the first precondition, by which the worker detects events that are already processed.
    private func expect(
        _ preconditions: [ObjectKey: Int64], of subject: EventSubject, _ decision: Int, _ batch: inout WriteBatch
    ) {
        let realm = subject.kind == .location ? realms[subject.realm] : common
        let own = realm.map { ObjectKey(realm: $0, kind: subject.kind, id: subject.id) }
        if let own { batch.expect(own, at: preconditions[own] ?? 0, decision: decision) }
        for (key, position) in preconditions where key != own { batch.expect(key, at: position, decision: decision) }
    }
}

/// People who are processed together: those whose ids begin with the same eight bytes, because a membership's id has
/// only these of its person. Usually this is one person.
struct LocationGroup {
    /// The inputs about these people, which share one decision.
    var inputs: [Int] = []
    /// The people with their `Person` objects.
    var people: [UUID: Presence] = [:]
    /// Their memberships, including tombstones, by the memberships' ids. A compacted tombstone is included if an input
    /// is about it. Any other is not: its event has already removed its team's copy, unless the event was not processed
    /// before the compaction.
    var memberships: [UUID: (position: Int64, stored: MembershipState)] = [:]

    /// The ends of the ids of all teams that one of these people is or was in.
    var teamEnds: Set<String> { Set(memberships.keys.map(Memberships.end)) }

    /// Returns the teams of a person.
    func teams(of person: UUID) -> Set<UUID> {
        Set(
            memberships.values.compactMap { membership in
                if case .of(person, let team) = membership.stored { team } else { nil }
            })
    }
}
