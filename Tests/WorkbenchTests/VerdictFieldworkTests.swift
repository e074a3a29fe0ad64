import DeviceClient
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import Workbench

/// The demo's verdict on tasks and calendars: one error at a time.
@Suite(.ownThreads) struct VerdictFieldworkTests {
    private static let people = [UUID(), UUID(), UUID()]
    private static let own = [RealmPath.users, .common, .manager].enumerated().map { index, _ in
        RealmPath("/users/p\(index)@acme.example") ?? .users
    }
    private static let (team, done, open, gone, item) = (UUID(), UUID(), UUID(), UUID(), UUID())
    private static let time = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
    private static let appointment = Appointment(when: time, durationMinutes: 30, why: "Planning")
    private static let link = SharedItem.id(of: item, with: people[1])
    private static let membership = Membership.id(of: people[0], in: team)

    private static let plan: FieldworkPlan = {
        let task = FieldTask(title: "Pump", creationDate: time, team: team)
        func life(_ id: UUID, _ end: FieldworkPlan.TaskLife.End) -> FieldworkPlan.TaskLife {
            FieldworkPlan.TaskLife(id: id, definition: task, manager: 2, end: end)
        }
        return FieldworkPlan(
            crews: [FieldworkPlan.Crew(id: team, name: "Red", members: [0])],
            tasks: [life(done, .completed(time, by: 0)), life(open, .open), life(gone, .cancelled(time))],
            calendars: [
                [
                    FieldworkPlan.CalendarEdit(
                        owner: 0, recipients: [1],
                        items: [FieldworkPlan.CalendarItem(id: item, appointment: appointment)])
                ]
            ], head: 2, people: people)
    }()

    private static func held(_ fields: some Encodable) throws -> DeviceObject {
        DeviceObject(position: 1, fields: Array(try JSONEncoder().encode(fields)))
    }

    private static func snapshot() throws -> EnvironmentSnapshot {
        var snapshot = EnvironmentSnapshot()
        for life in plan.tasks {
            guard let task = life.expected(people) else { continue }
            snapshot.realms[.manager, default: [:]][ObjectID(kind: .fieldTask, id: life.id)] = try held(task)
        }
        snapshot.realms[.common] = [
            ObjectID(kind: .membership, id: membership): try held(Membership(person: people[0], team: team)),
            ObjectID(kind: .team, id: team): try held(Team(name: "Red")),
        ]
        snapshot.realms[own[0]] = [
            ObjectID(kind: .appointment, id: item): try held(appointment),
            ObjectID(kind: .sharedItem, id: link): try held(
                SharedItem(kind: .appointment, item: item, recipient: people[1])),
        ]
        return snapshot
    }

    /// The verdict without the copies, which the snapshot does not have.
    private static func differences(_ snapshot: EnvironmentSnapshot) -> [String] {
        var verdict = Verdict(of: [], records: [])
        verdict.compare(plan, FieldworkReading(snapshot), own: own)
        return verdict.differences.filter { $0.subject != "copies" }.map(\.description)
    }

    @Test func plannedStateIsCounted() throws {
        #expect(try Self.differences(Self.snapshot()).isEmpty)
        var verdict = Verdict(of: [], records: [])
        verdict.compare(Self.plan, FieldworkReading(try Self.snapshot()), own: Self.own)
        #expect(
            verdict.counts == [
                .completed: 1, .open: 1, .referred: 0, .cancelled: 1, .withoutCoordinates: 3, .teams: 1, .positions: 0,
                .appointments: 1, .shares: 1,
            ])
    }

    @Test(arguments: 0..<9) func eachInjectedErrorIsReported(what: Int) throws {
        var snapshot = try Self.snapshot()
        let own = Self.own[0]
        var task = try #require(Self.plan.tasks[0].expected(Self.people))
        let (taskID, expected): (ObjectID, String)
        taskID = ObjectID(kind: .fieldTask, id: Self.done)
        switch what {
        case 0:
            task.completedBy = Self.people[1]
            snapshot.realms[.manager]?[taskID] = try Self.held(task)
            expected = "task: \(Self.done.text): differs from what was planned: completedBy"
        case 1:
            snapshot.realms[.manager]?[taskID] = nil
            expected = "task: \(Self.done.text): is not there"
        case 2:
            snapshot.realms[.manager]?[ObjectID(kind: .fieldTask, id: Self.gone)] = try Self.held(task)
            expected = "task: \(Self.gone.text): is there, and was to be deleted"
        case 3:
            let outsider = UUID()
            snapshot.realms[.manager]?[ObjectID(kind: .fieldTask, id: outsider)] = try Self.held(task)
            expected = "task: \(outsider.text): is there, but not planned"
        case 4:
            let other = Appointment(when: Self.time, durationMinutes: 45, why: "Planning")
            snapshot.realms[own]?[ObjectID(kind: .appointment, id: Self.item)] = try Self.held(other)
            expected = "\(own): appointment \(Self.item.text): differs from what was planned: durationMinutes"
        case 5:
            snapshot.realms[own]?[ObjectID(kind: .sharedItem, id: Self.link)] = nil
            expected = "\(own): SharedItem \(Self.link.text): is not there"
        case 6:
            snapshot.realms[.common]?[ObjectID(kind: .membership, id: Self.membership)] = nil
            expected = "/common: Membership \(Self.membership.text): is not there"
        case 7:
            snapshot.dead = ["task-fan-out: why"]
            expected = "services: dead-lettered keys: task-fan-out: why"
        default:
            let extra = UUID()
            snapshot.realms[own]?[ObjectID(kind: .appointment, id: extra)] = try Self.held(["what": "?"])
            expected = "\(own): appointment \(extra.text): is there, and was to be deleted"
        }
        #expect(Self.differences(snapshot) == [expected])
    }
}
