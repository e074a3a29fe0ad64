public import Essentials
public import FoundationEssentials
public import Model

/// How much there is to do.
public struct Workload: Equatable, Sendable {
    /// Tasks that are not done.
    public private(set) var openCount = 0
    /// Those of them that were due before now.
    public private(set) var overdueCount = 0

    /// Those of them that are not overdue.
    public var upcomingCount: Int { openCount - overdueCount }

    /// Nothing.
    public init() {}

    /// So much.
    public init(openCount: Int, overdueCount: Int) {
        self.openCount = openCount
        self.overdueCount = overdueCount
    }

    mutating func add(_ task: ListedTask, at now: Timestamp) {
        guard !task.isCompleted else { return }
        openCount += 1
        if task.isOverdue(at: now) { overdueCount += 1 }
    }
}

/// A person as managers look at them.
///
/// What cannot be understood of an object is as if it were not written: a person without a name has an empty one, and
/// one whose role this version does not know is a worker.
public struct ListedPerson: Equatable, Sendable {
    /// The id of the `Person` object.
    public let id: UUID
    /// Its fields.
    public let person: Person
    /// The teams that the person is in, in the order of their names. One whose `Team` is not there is left out.
    public let teams: [Identified<Team>]
    /// The tasks that are assigned to the person, by their masters.
    public let workload: Workload
    /// Where the person was last, and when; `nil` when they do not tell it.
    public let position: Location?
}

/// A manager's list of people, with their load and last position: read from `/common` and `/manager`.
///
/// A worker's device, which has no `/manager`, gets the people and their teams alone.
public struct PeopleList: Equatable, Sendable {
    /// Everybody, in the order of their names, whatever the case of the letters; then of their ids.
    public let people: [ListedPerson]
    /// The tasks that nobody of the list is to do: no assignee, or one whose `Person` is not there.
    public let unassigned: Workload

    /// The list as of now.
    ///
    /// - Parameters:
    ///   - contents: What the device shows, as ``DeviceState/contents`` has it.
    ///   - now: The time of the device.
    public init(in contents: [RealmPath: RealmContent], at now: Timestamp) {
        let common = CommonObjects(contents[.common] ?? [:])
        let managers = ManagerObjects(contents[.manager] ?? [:], people: common.people, at: now)
        let people = common.people.map { id, person in
            ListedPerson(
                id: id, person: person, teams: common.teams(of: id), workload: managers.workloads[id] ?? Workload(),
                position: managers.positions[id])
        }
        self.people = people.map { (name: $0.person.name.lowercased(), person: $0) }
            .sorted { ($0.name, $0.person.id) < ($1.name, $1.person.id) }.map(\.person)
        unassigned = managers.unassigned
    }
}

/// What everybody holds of people and teams.
private struct CommonObjects {
    private(set) var people: [UUID: Person] = [:]
    private var teams: [UUID: Team] = [:]
    private var memberships: [UUID: Set<UUID>] = [:]

    init(_ content: RealmContent) {
        for (id, held) in content.objects(of: .person) { people[id] = Person(held.json) }
        for (id, held) in content.objects(of: .team) { teams[id] = Team(held.json) }
        for (_, held) in content.objects(of: .membership) {
            let fields = held.json
            guard let person = fields?.id(of: "person"), let team = fields?.id(of: "team") else { continue }
            memberships[person, default: []].insert(team)
        }
    }

    func teams(of person: UUID) -> [Identified<Team>] {
        (memberships[person] ?? []).compactMap { id in teams[id].map { Identified(id: id, fields: $0) } }
            .sorted { ($0.fields.name.lowercased(), $0.id) < ($1.fields.name.lowercased(), $1.id) }
    }
}

/// What managers hold of people: their tasks' masters, and where they are.
private struct ManagerObjects {
    private(set) var workloads: [UUID: Workload] = [:]
    private(set) var unassigned = Workload()
    private(set) var positions: [UUID: Location] = [:]

    init(_ content: RealmContent, people: [UUID: Person], at now: Timestamp) {
        for task in ListedTask.all(in: .manager, of: [.manager: content]) {
            if let assignee = task.assignee, people[assignee] != nil {
                workloads[assignee, default: Workload()].add(task, at: now)
            } else {
                unassigned.add(task, at: now)
            }
        }
        for person in people.keys {
            positions[person] = content[ObjectID(kind: .location, id: person)].flatMap { Location($0.json) }
        }
    }
}

extension Person {
    fileprivate init(_ fields: JSONObject?) {
        self.init(
            name: fields?.text(of: "name") ?? "", avatar: fields?.id(of: "avatar"),
            role: fields.map { Role(of: $0) } ?? .worker)
    }
}

extension Team {
    fileprivate init(_ fields: JSONObject?) {
        self.init(
            name: fields?.text(of: "name") ?? "", teamDescription: fields?.text(of: "teamDescription"),
            backgroundColor: fields?.text(of: "backgroundColor"), image: fields?.id(of: "image"))
    }
}

extension Location {
    /// - Returns: `nil` when the fields tell no place on Earth.
    fileprivate init?(_ fields: JSONObject?) {
        guard let fields, let latitude = fields.number(of: "latitude"), let longitude = fields.number(of: "longitude")
        else { return nil }
        self.init(
            latitude: latitude, longitude: longitude, accuracy: fields.number(of: "accuracy"),
            timestamp: fields.timestamp(of: "timestamp"))
        guard objection == nil else { return nil }
    }
}
