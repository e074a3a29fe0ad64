import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// A person's, a team's and a manager's tasks.
@Suite(.ownThreads) struct TaskListsTests {
    private typealias Held = HeldContents

    private let own: RealmPath
    private let team = Held.id(8)
    private let other = Held.id(9)

    init() throws { own = try RealmPath.user("ana@example.com") }

    /// One of the three lists.
    enum Name: Sendable {
        case overdue, upcoming, completed

        func list(of lists: TaskLists) -> [ListedTask] {
            switch self {
            case .overdue: lists.overdue
            case .upcoming: lists.upcoming
            case .completed: lists.completed
            }
        }
    }

    /// A task with the fields that determine its list, in minutes relative to now.
    struct Case: Sendable, CustomTestStringConvertible {
        var due: Int64?
        var done: Int64?
        var isCompleted = false
        let list: Name
        let testDescription: String
    }

    static let cases = [
        Case(list: .upcoming, testDescription: "without a due date"),
        Case(due: 1, list: .upcoming, testDescription: "due later"),
        Case(due: 0, list: .upcoming, testDescription: "due now"),
        Case(due: -1, list: .overdue, testDescription: "due before now"),
        Case(due: -1, done: -2, isCompleted: true, list: .completed, testDescription: "due before now, and done"),
        Case(isCompleted: true, list: .completed, testDescription: "done without a date"),
        Case(due: 1, done: -2, list: .upcoming, testDescription: "done once, and reopened"),
        Case(due: -1, done: -2, list: .overdue, testDescription: "done once, reopened, due before now"),
    ]

    @Test(arguments: cases) func taskIsInExactlyOneList(item: Case) throws {
        var contents: [RealmPath: RealmContent] = [:]
        let task = FieldTask(
            title: "t", dueDate: item.due.map(Held.minute), isCompleted: item.isCompleted,
            completionDate: item.done.map(Held.minute), assignee: Held.ana, team: team)
        try contents.put(.fieldTask, Held.id(20), task, in: .team(team))
        let lists = TaskLists(ofTeam: team, in: contents, at: Held.now)
        #expect(item.list.list(of: lists).map(\.id) == [Held.id(20)])
        #expect(lists.overdue.count + lists.upcoming.count + lists.completed.count == 1)
        #expect(lists.open.count == (item.isCompleted ? 0 : 1))
        let listed = try #require((lists.open + lists.completed).first)
        #expect(listed.title == "t" && listed.assignee == Held.ana && listed.team == team)
        #expect(listed.dueDate == task.dueDate && listed.isCompleted == item.isCompleted)
        #expect(listed.isOverdue(at: Held.now) == (item.list == .overdue))
        #expect(listed.completionDate == (item.isCompleted ? task.completionDate : nil))
        #expect(listed.address == ObjectAddress(.team(team), ObjectID(kind: .fieldTask, id: Held.id(20))))
    }

    /// Each list has its order; tasks with the same date are ordered by title, then by id.
    @Test func listsAreOrdered() throws {
        var contents: [RealmPath: RealmContent] = [:]
        var number: UInt8 = 100
        func add(_ title: String, due: Int64? = nil, done: Int64? = nil, isCompleted: Bool = false) throws {
            let task = FieldTask(
                title: title, dueDate: due.map(Held.minute), isCompleted: isCompleted,
                completionDate: done.map(Held.minute))
            number -= 1
            try contents.put(.fieldTask, Held.id(number), task, in: .manager)
        }
        try add("no date, b")
        try add("no date, a")
        for due: Int64 in [7, 0, 3] { try add("in \(due)", due: due) }
        for due: Int64 in [-1, -60, -3] { try add("since \(-due)", due: due) }
        try add("since 3, too", due: -3)
        try add("done without a date", isCompleted: true)
        for done: Int64 in [-9, -2, -5] { try add("done \(-done) ago", done: done, isCompleted: true) }
        try add("done 5 ago, too", done: -5, isCompleted: true)
        try add("same", due: 9)
        let second = number
        try add("same", due: 9)
        let lists = TaskLists(ofMastersIn: contents, at: Held.now)
        #expect(lists.overdue.map(\.title) == ["since 60", "since 3", "since 3, too", "since 1"])
        #expect(
            lists.upcoming.map(\.title) == ["in 0", "in 3", "in 7", "same", "same", "no date, a", "no date, b"])
        #expect(lists.upcoming[3...4].map(\.id) == [Held.id(number), Held.id(second)])
        #expect(
            lists.completed.map(\.title)
                == ["done 2 ago", "done 5 ago", "done 5 ago, too", "done 9 ago", "done without a date"])
        #expect(lists.open == lists.overdue + lists.upcoming)
    }

    /// A person has the tasks of their own realm, and the assigned ones of their teams.
    @Test func personAndTeamListsAreSeparate() throws {
        var contents: [RealmPath: RealmContent] = [:]
        func add(_ title: String, assignee: UUID?, _ team: UUID?, in realm: RealmPath) throws {
            let task = FieldTask(title: title, assignee: assignee, team: team)
            try contents.put(.fieldTask, Held.id(UInt8(contents.values.map(\.count).reduce(30, +))), task, in: realm)
        }
        try add("own", assignee: Held.ana, nil, in: own)
        try add("team, ana's", assignee: Held.ana, team, in: .team(team))
        try add("team, bo's", assignee: Held.bo, team, in: .team(team))
        try add("team, free", assignee: nil, team, in: .team(team))
        try add("other team, ana's", assignee: Held.ana, other, in: .team(other))
        try add("master of ana's", assignee: Held.ana, nil, in: .manager)
        try add("master of bo's", assignee: Held.bo, team, in: .manager)
        try add("archived", assignee: Held.ana, nil, in: .archive)
        // Other objects of these realms are not tasks.
        try contents.put(.location, Held.ana, Location(latitude: 1, longitude: 2), in: own)
        try contents.put(.location, Held.ana, Location(latitude: 1, longitude: 2), in: .team(team))

        func titles(_ lists: TaskLists) -> [String?] { lists.open.map(\.title) }
        let person = TaskLists(ofPerson: Held.ana, realm: own, in: contents, at: Held.now)
        #expect(titles(person) == ["other team, ana's", "own", "team, ana's"])
        #expect(
            titles(TaskLists(ofTeam: team, in: contents, at: Held.now)) == ["team, ana's", "team, bo's", "team, free"])
        #expect(titles(TaskLists(ofMastersIn: contents, at: Held.now)) == ["master of ana's", "master of bo's"])
        #expect(
            titles(TaskLists(ofMastersIn: contents, at: Held.now) { $0.team == team }) == ["master of bo's"])
        #expect(TaskLists(ofTeam: Held.id(77), in: contents, at: Held.now).open.isEmpty)
        #expect(TaskLists(ofPerson: Held.ana, realm: own, in: [:], at: Held.now).open.isEmpty)
    }

    /// Unsupported fields of a newer server or another writer do not remove a task from the list.
    @Test(arguments: [
        ("{}", Name.upcoming), (#"{"title":7,"dueDate":"soon","isCompleted":null}"#, .upcoming),
        (#"{"title":null,"dueDate":{"day":1},"isCompleted":"yes"}"#, .upcoming), ("[]", .upcoming), ("", .upcoming),
        (#"{"dueDate":"2001-01-01T00:00:00Z","place":7}"#, .overdue),
        (#"{"isCompleted":true,"completionDate":false}"#, .completed),
    ])
    func invalidTaskFieldsAreIgnored(fields: String, list: Name) {
        for realm in [own, .team(team), .manager] {
            var contents: [RealmPath: RealmContent] = [:]
            contents.hold(.fieldTask, Held.id(20), Array(fields.utf8), in: realm)
            let lists =
                switch realm {
                case own: TaskLists(ofPerson: Held.ana, realm: own, in: contents, at: Held.now)
                case .manager: TaskLists(ofMastersIn: contents, at: Held.now)
                default: TaskLists(ofTeam: team, in: contents, at: Held.now)
                }
            #expect(list.list(of: lists).map(\.id) == [Held.id(20)], "\(realm)")
            #expect((lists.open + lists.completed).map(\.title) == [nil], "\(realm)")
        }
    }

    /// The person's latest change is in the lists before the server has responded.
    @Test func pendingMutationIsListed() throws {
        var device = DeviceState(clientID: UUID())
        let task = ObjectID(kind: .fieldTask, id: Held.id(20))
        let fields = Array(try JSONEncoder().encode(FieldTask(title: "t", assignee: Held.ana, team: team)))
        for realm in [own, .team(team)] { _ = device.take(.open(realm, isReset: true)) }
        _ = device.take(
            .objects(.team(team), cursor: nil, [.init(id: task, object: DeviceObject(position: 3, fields: fields))]))
        _ = device.take(.checkpoint(position: 3, cursor: "3", cursors: [:]))
        let patch = Mutation(
            operation: .patch, kind: .fieldTask, id: task.id, fields: Array(#"{"isCompleted":true}"#.utf8))
        _ = try device.enqueue(patch, in: .team(team))
        func lists(_ contents: [RealmPath: RealmContent]) -> TaskLists {
            TaskLists(ofPerson: Held.ana, realm: own, in: contents, at: Held.now)
        }
        #expect(lists(device.contents).completed.map(\.id) == [task.id])
        #expect(lists(device.copy.contents).upcoming.map(\.id) == [task.id])
        // In a realm that the device does not have, a patch has no effect, and a put creates its object.
        _ = try device.enqueue(patch, in: .team(other))
        #expect(device.contents[.team(other)] == nil)
        let put = Mutation(operation: .put, kind: .fieldTask, id: Held.id(21), fields: fields)
        _ = try device.enqueue(put, in: .manager)
        _ = try device.enqueue(Mutation(operation: .delete, kind: .fieldTask, id: task.id), in: .team(team))
        #expect(lists(device.contents) == lists([:]))
        #expect(TaskLists(ofMastersIn: device.contents, at: Held.now).open.map(\.id) == [Held.id(21)])
        for realm in [own, .team(team), .team(other), .manager] {
            #expect(device.contents[realm] ?? [:] == device.content(of: realm), "\(realm)")
        }
    }
}
