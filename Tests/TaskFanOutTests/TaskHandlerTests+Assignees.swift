import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import TaskFanOut

/// Tasks and their assignees: progress is merged into the master, and the copy follows the assignee.
extension TaskHandlerTests {
    private static let open = #"{"isCompleted":false,"completionDate":null,"completedBy":null}"#

    private static func done(at time: String, by person: UUID) -> String {
        "{\"isCompleted\":true,\"completionDate\":\"2026-03-30T\(time):00.000Z\",\"completedBy\":\"\(person.text)\"}"
    }

    @Test func completionByAssigneeReachesTheMaster() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let hers = try RealmPath.user("ana@example.com")
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\"}")
        try world.settle()
        try world.patch(task, Self.done, in: hers)
        try world.settle()
        let master = try world.master(task, hasCopyIn: hers)
        #expect(master.isCompleted && master.completionDate?.description == "2026-03-30T09:40:00.000Z")
        // The manager reopens it.
        try world.patch(task, #"{"isCompleted":false,"completionDate":null}"#, in: .manager)
        try world.settle()
        let again = try world.master(task, hasCopyIn: hers)
        #expect(!again.isCompleted && again.completionDate == nil)
        #expect(try world.settleRepublished() == 0)
    }

    /// Completed, reopened, and completed by another person at another time.
    @Test func completionDateAndPersonAreTheLatest() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let red = try world.acme.makeTeam(members: [ana, ben])
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        for (time, person) in [("09:40", ana), (nil, nil), ("10:40", ben)] as [(String?, UUID?)] {
            let progress = time.flatMap { time in person.map { Self.done(at: time, by: $0) } } ?? Self.open
            try world.patch(task, progress, in: .team(red))
            try world.settle()
            let master = try world.master(task, hasCopyIn: .team(red))
            #expect(master.isCompleted == (time != nil) && master.completedBy == person)
            #expect(master.completionDate?.description == time.map { "2026-03-30T\($0):00.000Z" })
        }
        #expect(try world.settleRepublished() == 0)
    }

    /// The task is open, was completed before, or is completed while its copy is deleted.
    @Test(arguments: ["open", "done before", "done meanwhile"]) func deletedTaskHasNoCopy(
        progress: String
    ) throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        if progress == "done before" { try world.patch(task, Self.done, in: .team(red)) }
        try world.acme.delete(.fieldTask, task, in: .manager)
        if progress == "done meanwhile" {
            let (realm, environment, done) = (try world.acme.realm(.team(red)), world.acme.id, Self.done)
            try world.settle { connection in
                try TaskWorld.patch(task, done, in: realm, of: environment, on: &connection)
            }
            #expect(world.missedCount == 1)
        } else {
            try world.settle()
        }
        #expect(try world.objectsByRealm(task).isEmpty)
        #expect(try world.settleRepublished() == 0)
    }

    /// The copy moves with the assignee. A new team keeps its member as the assignee.
    @Test func copyFollowsItsAssignee() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let (hers, his) = (try RealmPath.user("ana@example.com"), try RealmPath.user("ben@example.com"))
        let red = try world.acme.makeTeam(members: [ana, ben])
        let place = #"{"latitude":34.05,"longitude":-118.24,"city":"Los Angeles"}"#
        let task = try world.task("{\"title\":\"Pipe\",\"place\":\(place),\"assignee\":\"\(ana.text)\"}")
        func expect(_ world: inout TaskWorld, _ path: RealmPath, _ assignee: UUID) throws {
            try world.settle()
            let master = try world.master(task, hasCopyIn: path)
            #expect(master.assignee == assignee)
            #expect(master.place == TaskLocation(latitude: 34.05, longitude: -118.24, city: "Los Angeles"))
        }
        try expect(&world, hers, ana)
        try world.patch(task, "{\"assignee\":\"\(ben.text)\"}", in: .manager)
        try expect(&world, his, ben)
        try world.patch(task, "{\"team\":\"\(red.text)\"}", in: .manager)
        try expect(&world, .team(red), ben)
        try world.patch(task, "{\"assignee\":\"\(ana.text)\"}", in: .manager)
        try expect(&world, .team(red), ana)
        try world.patch(task, #"{"team":null}"#, in: .manager)
        try expect(&world, hers, ana)
        #expect(try world.settleRepublished() == 0)
    }

    /// One assignee completes the task while the manager assigns another.
    @Test func newAssigneeKeepsCompletion() throws {
        var world = try TaskWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let task = try world.task("{\"title\":\"Pipe\",\"assignee\":\"\(ana.text)\"}")
        try world.settle()
        try world.patch(task, Self.done(at: "09:40", by: ana), in: try .user("ana@example.com"))
        try world.patch(task, "{\"assignee\":\"\(ben.text)\"}", in: .manager)
        try world.settle()
        let master = try world.master(task, hasCopyIn: try .user("ben@example.com"))
        #expect(master.isCompleted && master.completedBy == ana && master.assignee == ben)
        #expect(try world.settleRepublished() == 0)
    }
}
