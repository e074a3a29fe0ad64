public import Essentials
public import FoundationEssentials
public import Model

/// The number of open tasks.
public struct Workload: Equatable, Sendable {
    /// Tasks that are not completed.
    public private(set) var openCount = 0
    /// Open tasks that were due before now.
    public private(set) var overdueCount = 0

    /// Open tasks that are not overdue.
    public var upcomingCount: Int { openCount - overdueCount }

    /// Creates an empty workload.
    public init() {}

    /// Creates a workload.
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

/// A person in a manager's list.
///
/// Invalid fields are treated as absent: a person without a name has an empty one, and one whose role this version does
/// not support is a worker.
public struct ListedPerson: Equatable, Sendable {
    /// The id of the `Person` object.
    public let id: UUID
    /// Its fields.
    public let person: Person
    /// The person's teams, in the order of their names. Teams without a `Team` object are omitted.
    public let teams: [Identified<Team>]
    /// The workload of the person's assigned master tasks.
    public let workload: Workload
    /// The person's last location; `nil` if they do not share it.
    public let position: Location?
}

/// A manager's list of people with their workload and last location, from `/common` and `/manager`.
///
/// A worker's device, which has no `/manager`, gets only the people and their teams.
public struct PeopleList: Equatable, Sendable {
    /// All people, ordered by name case-insensitively, then by id.
    public let people: [ListedPerson]
    /// The tasks without an assignee, or whose assignee has no `Person` object.
    public let unassigned: Workload

    /// Creates the list.
    ///
    /// - Parameters:
    ///   - contents: The shown objects, see ``DeviceState/contents``.
    ///   - now: The device's time.
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

/// The people, teams and memberships of `/common`.
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

/// The master tasks and locations of `/manager`.
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
            name: fields?.text(of: "name") ?? "", firstName: fields?.text(of: "firstName"),
            lastName: fields?.text(of: "lastName"), avatar: fields?.id(of: "avatar"),
            role: fields.map { Role(of: $0) } ?? .worker)
    }
}

extension Team {
    fileprivate init(_ fields: JSONObject?) {
        self.init(
            name: fields?.text(of: "name") ?? "", teamDescription: fields?.text(of: "teamDescription"),
            backgroundColor: fields?.text(of: "backgroundColor"), image: fields?.id(of: "image"),
            creationDate: fields?.timestamp(of: "creationDate"),
            modificationDate: fields?.timestamp(of: "modificationDate"))
    }
}

extension Location {
    /// - Returns: `nil` if the fields are not a valid location.
    fileprivate init?(_ fields: JSONObject?) {
        guard let fields, let latitude = fields.number(of: "latitude"), let longitude = fields.number(of: "longitude")
        else { return nil }
        self.init(
            latitude: latitude, longitude: longitude, accuracy: fields.number(of: "accuracy"),
            timestamp: fields.timestamp(of: "timestamp"), placeName: fields.text(of: "placeName"))
        guard objection == nil else { return nil }
    }
}
