import BackendConnections
import BackendContract
import Compass
import Essentials
import FoundationEssentials
import Logging
import Model
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker
@testable import Sandbox

/// Rounds over real HTTP, with the stand-in for Compass and a real PostgreSQL.
@Suite(.ownThreads) struct CompassRoundTests {
    @Test func ownersAreToldAndNoQueryIsLeft() async throws {
        try await CompassWorld.run { world in
            try await world.standIn.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            #expect(try world.notices().isEmpty)
            try await world.standIn.change([
                .init(record: "SAMPL00000001", action: "Modify", fields: ["Severity": "2-Major"]),
                .init(user: "ana", fields: ["Headline": "New", "Owner": "bo"]),
                .init(record: "SAMPL00000002", user: "bo", action: "Modify", fields: ["Severity": "1-Critical"]),
            ])
            for _ in 0..<2 {
                try await world.complete()
                #expect(
                    try world.notices() == [
                        "/users/ana@example.com: SAMPL00000001 (It fails) has been modified",
                        "/users/bo@example.com: SAMPL00000002 (New) has been assigned to you",
                    ])
            }
            #expect(world.standIn.queryCount == 0)
            #expect(try world.mirrorCount() == 4)
        }
    }

    @Test(arguments: [false, true]) func actionsInOneSecondAreAllNotified(hidesHistoryIDs: Bool) async throws {
        try await CompassWorld.run { world in
            try await world.standIn.post("/sandbox/switches", #"{"hidesHistoryIDs": \#(hidesHistoryIDs)}"#)
            try await world.standIn.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            let now = Timestamp.now()
            world.standIn.system.load(
                CompassOrganisation(users: ["eva", "ian"].map { CompassUser(name: $0, password: "x") }))
            try world.standIn.system.perform(
                ["bo", "eva", "ian", "bo"].map {
                    CompassChange(
                        record: "SAMPL00000001", user: $0, action: "Modify", fields: ["Severity": "2-Major"], at: now)
                })
            for _ in 0..<2 { try await world.complete() }
            #expect(try world.notices().count == (hidesHistoryIDs ? 3 : 4))
            #expect(world.standIn.queryCount == 0)
        }
    }

    /// A query is refused once because its folder has another id: its columns are not at fault.
    @Test func changedFolderDoesNotHideTheNumbersOfTheHistory() async throws {
        try await CompassWorld.run { world in
            try await world.standIn.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            world.standIn.system.withState { state in
                for var folder in state.workspace.folders.values where folder.owner == "fieldpost" {
                    folder.owner = "nobody"
                    state.write(.folder(folder))
                }
                let id = state.workspace.nextID
                state.write(.folder(.init(id: id, name: CompassWorkspace.personal, owner: "fieldpost")))
            }
            let refusedCount = try await world.standIn.stats()["refused"] ?? 0
            try await world.complete()
            #expect(try await world.standIn.stats()["refused"] == refusedCount + 1)
            let now = Timestamp.now()
            let change = CompassChange(
                record: "SAMPL00000001", user: "bo", action: "Modify", fields: ["Severity": "2-Major"], at: now)
            try world.standIn.system.perform([change, change])
            for _ in 0..<2 { try await world.complete() }
            let notice = "/users/ana@example.com: SAMPL00000001 (It fails) has been modified"
            #expect(try world.notices() == [notice, notice])
        }
    }

    /// The least that the API allows: the query is made, run and removed, and its pages are read.
    @Test func aRoundTakesThreeRequestsBesideItsPages() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.standIn.change(
                (0..<1_201).map { .init(fields: ["Headline": "Defect \($0)", "Owner": "ana"]) })
            for (scope, pages) in [(DefectPoll.Scope.changes, 3), (.comparison, 3), (.changes, 3)] {
                let before = try await world.standIn.stats()["requests"] ?? 0
                try await world.complete(scope)
                let after = try await world.standIn.stats()["requests"] ?? 0
                #expect(after - before == 3 + pages, "\(scope)")
            }
            #expect(try world.mirrorCount() == 1_201 * 2)
            #expect(world.standIn.queryCount == 0)
        }
    }

    @Test func aReadingThatIsBrokenOffLeavesAQueryThatIsRemovedLater() async throws {
        try await CompassWorld.run { world in
            try await world.standIn.change(
                (0..<501).map { .init(fields: ["Headline": "Defect \($0)", "Owner": "ana"]) })
            let compass = CompassClient(
                CompassSettings(serverURL: world.standIn.url, repository: "CCMRepo", database: "SAMPL"),
                as: .password(user: "fieldpost", password: "secret-of-all"), client: world.standIn.client)
            let start = Timestamp.now()
            let reading = Reading(
                scope: .comparison, own: nil, part: .everybodys,
                tracker: TrackerIDs(server: "s", repository: "r", database: "d"), position: 1, askedAt: 1,
                watermark: nil, since: CompassTime(secondsOfItsClock: 0), reached: 0, isFirst: true)
            for (minutes, left) in [(0, 1), (59, 2), (61, 2), (122, 1)] {
                let now = Timestamp(millisecondsSinceEpoch: start.millisecondsSinceEpoch + Int64(minutes) * 60_000)
                let session = TrackerSession(compass, logger: Logger(label: "session"), now: { now })
                let answer = await session.read(reading)
                #expect(try answer.result.get().open != nil)
                // Its own, and what is not an hour old.
                #expect(world.standIn.queryCount == left, "after \(minutes) minutes")
            }
        }
    }

    @Test func aRefusedAccountIsAskedAgainUntilItIsNot() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.standIn.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try await world.standIn.switches(#"{"refusesLogins": true}"#)
            try world.begin()
            for _ in 0..<2 {
                guard case .park(_, _, .backendAway) = try await world.finish() else {
                    Issue.record("a refused account is no reason to go on")
                    return
                }
            }
            try await world.standIn.switches(#"{"refusesLogins": false}"#)
            let left = try await world.finish()
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }

    @Test func whatHappenedWhileCompassWasAwayIsToldAfter() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.standIn.behave(.failing)
            try await world.standIn.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try world.begin()
            for _ in 0..<3 {
                guard case .park(_, _, .backendAway) = try await world.finish() else {
                    Issue.record("it does not wait")
                    return
                }
            }
            try await world.standIn.behave(.losingAnswers)
            let lost = try await world.finish()
            #expect(lost != nil)
            try await world.standIn.behave(.normal)
            let left = try await world.finish()
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }

    /// The server's clock shows local time, ten minutes wrong, and is set back while rounds are read; what is written
    /// is seen some minutes later.
    @Test(arguments: [-600, 600]) func nothingIsLostWhenTheClocksAreSetBack(skew: Int) async throws {
        try await CompassWorld.run { world in
            let change = 1_792_890_000
            func time(_ minutes: Int) -> Timestamp {
                Timestamp(millisecondsSinceEpoch: Int64(change + minutes * 60) * 1_000)
            }
            try await world.standIn.setClock(time(-70))
            try await world.standIn.switches(
                #"{"zone": {"offsetMinutes": 60, "summer": "eu"}, "clockSkewSeconds": \#(skew), "visibleAfterMs": 240000}"#
            )
            try await world.standIn.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.standIn.setClock(time(-60))
            try await world.complete(at: time(-60))
            for minutes in stride(from: -55, through: 125, by: 5) {
                // Each at other seconds: no two rows say the same.
                let second = time(minutes).millisecondsSinceEpoch + Int64(minutes + 55) * 200
                try await world.standIn.setClock(Timestamp(millisecondsSinceEpoch: second))
                if minutes <= 120 {
                    try await world.standIn.change([
                        .init(record: "SAMPL00000001", action: "Modify", fields: ["Headline": "at \(minutes)"])
                    ])
                }
                try await world.complete(at: time(minutes))
            }
            #expect(try world.notices().count == 36)
        }
    }
}
