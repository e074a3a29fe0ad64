import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// A manager's list of people.
@Suite(.ownThreads) struct PeopleListTests {
    private typealias Held = HeldContents

    private let north = Held.id(8)
    private let south = Held.id(9)
    private var contents: [RealmPath: RealmContent] = [:]

    init() throws {
        try contents.put(.person, Held.ana, Person(name: "ana", avatar: Held.id(5), role: .manager), in: .common)
        try contents.put(.person, Held.bo, Person(name: "Bo"), in: .common)
        try contents.put(.team, north, Team(name: "North", backgroundColor: "ff0000"), in: .common)
        try contents.put(.team, south, Team(name: "south"), in: .common)
    }

    private mutating func join(_ person: UUID, _ team: UUID) throws {
        let id = Membership.id(of: person, in: team)
        try contents.put(.membership, id, Membership(person: person, team: team), in: .common)
    }

    private mutating func add(_ number: UInt8, due: Int64?, _ assignee: UUID?, isCompleted: Bool = false) throws {
        let task = FieldTask(
            title: "t", dueDate: due.map(Held.minute), isCompleted: isCompleted, assignee: assignee)
        try contents.put(.fieldTask, Held.id(number), task, in: .manager)
    }

    private var list: PeopleList { PeopleList(in: contents, at: Held.now) }

    @Test mutating func personIsListedWithTeamsLoadAndLocation() throws {
        try join(Held.ana, south)
        try join(Held.ana, north)
        try join(Held.bo, south)
        try add(20, due: -1, Held.ana)
        try add(21, due: 1, Held.ana)
        try add(22, due: nil, Held.ana)
        try add(23, due: -1, Held.ana, isCompleted: true)
        try add(24, due: 0, Held.bo)
        let location = Location(latitude: 48.2, longitude: -16.37, accuracy: 12.5, timestamp: Held.minute(-5))
        try contents.put(.location, Held.ana, location, in: .manager)
        // Copies of tasks and locations in other realms are ignored.
        try contents.put(.fieldTask, Held.id(25), FieldTask(title: "t", assignee: Held.bo), in: .team(south))
        try contents.put(.location, Held.bo, location, in: .team(south))

        let list = list
        #expect(list.people.map(\.id) == [Held.ana, Held.bo])
        let (ana, bo) = (list.people[0], list.people[1])
        #expect(ana.person == Person(name: "ana", avatar: Held.id(5), role: .manager))
        #expect(ana.teams.map(\.id) == [north, south])
        #expect(ana.teams.map(\.fields) == [Team(name: "North", backgroundColor: "ff0000"), Team(name: "south")])
        #expect(ana.workload == Workload(openCount: 3, overdueCount: 1) && ana.workload.upcomingCount == 2)
        #expect(ana.position == location)
        #expect(bo.person == Person(name: "Bo") && bo.teams.map(\.id) == [south])
        #expect(bo.workload == Workload(openCount: 1, overdueCount: 0) && bo.position == nil)
        #expect(list.unassigned == Workload())
    }

    /// Every open master task is counted once.
    @Test mutating func unassignedTasksAreCountedSeparately() throws {
        try add(20, due: -1, nil)
        try add(21, due: 1, Held.id(66))
        try add(22, due: nil, Held.bo)
        try add(23, due: nil, nil, isCompleted: true)
        contents.hold(.fieldTask, Held.id(24), Array("[]".utf8), in: .manager)
        contents.hold(.fieldTask, Held.id(25), Array(#"{"assignee":"\#(Held.bo.uuidString)"}"#.utf8), in: .manager)
        let list = list
        #expect(list.unassigned == Workload(openCount: 3, overdueCount: 1))
        #expect(list.people.map(\.workload.openCount) == [0, 2])
        let masters = TaskLists(ofMastersIn: contents, at: Held.now)
        let loads = list.people.map(\.workload) + [list.unassigned]
        #expect(loads.map(\.openCount).reduce(0, +) == masters.open.count)
        #expect(loads.map(\.overdueCount).reduce(0, +) == masters.overdue.count)
    }

    @Test mutating func namesAreOrderedCaseInsensitively() throws {
        for (number, name) in [(10, "bo"), (11, "Carla"), (12, "BO"), (13, "Årne"), (14, "")] as [(UInt8, String)] {
            try contents.put(.person, Held.id(number), Person(name: name), in: .common)
        }
        let expected = [14, 1, 2, 10, 12, 11, 13] as [UInt8]
        #expect(list.people.map(\.id) == expected.map(Held.id))
    }

    /// Unsupported fields do not remove a person from the list.
    @Test mutating func invalidObjectFieldsAreIgnored() throws {
        let (carla, invalid) = (Held.id(10), Held.id(11))
        contents.hold(.person, carla, Array(#"{"name":"Carla","role":"owner","avatar":7}"#.utf8), in: .common)
        contents.hold(.person, invalid, Array("nothing".utf8), in: .common)
        contents.hold(.team, north, Array(#"{"name":null}"#.utf8), in: .common)
        contents.hold(.membership, Held.id(12), Array(#"{"person":"\#(Held.bo.text)"}"#.utf8), in: .common)
        try join(carla, north)
        try join(carla, Held.id(77))
        let people = list.people
        #expect(people.map(\.id) == [invalid, Held.ana, Held.bo, carla])
        #expect(people[3].person == Person(name: "Carla") && people[0].person == Person())
        // A team without an object is not shown.
        #expect(people[3].teams == [Identified(id: north, fields: Team(name: ""))] && people[2].teams.isEmpty)
    }

    @Test(arguments: [
        (#"{"latitude":1,"longitude":2}"#, Location(latitude: 1, longitude: 2)),
        (
            #"{"latitude":-1.5e1,"longitude":2,"accuracy":null,"timestamp":"now"}"#,
            Location(latitude: -15, longitude: 2)
        ),
        (#"{"latitude":91,"longitude":2}"#, nil), (#"{"latitude":"1","longitude":2}"#, nil),
        (#"{"latitude":1,"longitude":null}"#, nil), (#"{"longitude":2}"#, nil), ("", nil),
    ])
    mutating func locationMustBeOnEarth(fields: String, position: Location?) {
        contents.hold(.location, Held.bo, Array(fields.utf8), in: .manager)
        #expect(list.people.map(\.position) == [nil, position])
    }

    /// A worker's device has no master tasks and no locations.
    @Test mutating func workersDeviceListsPeopleAndTeams() throws {
        try join(Held.bo, north)
        #expect(list.people.map(\.teams.count) == [0, 1])
        #expect(list.people.allSatisfy { $0.workload == Workload() && $0.position == nil })
        #expect(PeopleList(in: [:], at: Held.now).people.isEmpty)
    }
}
