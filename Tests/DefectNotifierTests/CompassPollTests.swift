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

/// Polls over real HTTP, with the Compass emulator and a real PostgreSQL.
@Suite(.ownThreads) struct CompassPollTests {
    @Test func pollsNotifyOwnersAndDeleteTheirQueries() async throws {
        try await CompassWorld.run { world in
            try await world.compass.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            #expect(try world.notices().isEmpty)
            try await world.compass.change([
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
            #expect(world.compass.queryCount == 0)
            #expect(try world.mirrorCount() == 4)
        }
    }

    @Test(arguments: [false, true]) func actionsInOneSecondAreAllNotified(hidesHistoryIDs: Bool) async throws {
        try await CompassWorld.run { world in
            try await world.compass.post("/sandbox/switches", #"{"hidesHistoryIDs": \#(hidesHistoryIDs)}"#)
            try await world.compass.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            let now = Timestamp.now()
            world.compass.system.load(
                CompassOrganisation(users: ["eva", "ian"].map { CompassUser(name: $0, password: "x") }))
            try world.compass.system.perform(
                ["bo", "eva", "ian", "bo"].map {
                    CompassChange(
                        record: "SAMPL00000001", user: $0, action: "Modify", fields: ["Severity": "2-Major"], at: now)
                })
            for _ in 0..<2 { try await world.complete() }
            #expect(try world.notices().count == (hidesHistoryIDs ? 3 : 4))
            #expect(world.compass.queryCount == 0)
        }
    }

    /// A query is rejected once because its folder has another id, not because of its columns.
    @Test func changedFolderDoesNotHideTheNumbersOfTheHistory() async throws {
        try await CompassWorld.run { world in
            try await world.compass.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.complete()
            world.compass.system.withState { state in
                for var folder in state.workspace.folders.values where folder.owner == "fieldpost" {
                    folder.owner = "other"
                    state.write(.folder(folder))
                }
                let id = state.workspace.nextID
                state.write(.folder(.init(id: id, name: CompassWorkspace.personal, owner: "fieldpost")))
            }
            let refusedCount = try await world.compass.stats()["refused"] ?? 0
            try await world.complete()
            #expect(try await world.compass.stats()["refused"] == refusedCount + 1)
            let now = Timestamp.now()
            let change = CompassChange(
                record: "SAMPL00000001", user: "bo", action: "Modify", fields: ["Severity": "2-Major"], at: now)
            try world.compass.system.perform([change, change])
            for _ in 0..<2 { try await world.complete() }
            let notice = "/users/ana@example.com: SAMPL00000001 (It fails) has been modified"
            #expect(try world.notices() == [notice, notice])
        }
    }

    /// The minimum of the API: the query is created, run and deleted, and its pages are read.
    @Test func pollTakesThreeRequestsPlusPages() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.compass.change(
                (0..<1_201).map { .init(fields: ["Headline": "Defect \($0)", "Owner": "ana"]) })
            for (scope, pages) in [(DefectPoll.Scope.changes, 3), (.comparison, 3), (.changes, 3)] {
                let before = try await world.compass.stats()["requests"] ?? 0
                try await world.complete(scope)
                let after = try await world.compass.stats()["requests"] ?? 0
                #expect(after - before == 3 + pages, "\(scope)")
            }
            #expect(try world.mirrorCount() == 1_201 * 2)
            #expect(world.compass.queryCount == 0)
        }
    }

    @Test func strayQueryOfAnInterruptedPollIsDeletedAfterAnHour() async throws {
        try await CompassWorld.run { world in
            try await world.compass.change(
                (0..<501).map { .init(fields: ["Headline": "Defect \($0)", "Owner": "ana"]) })
            let compass = CompassClient(
                CompassSettings(serverURL: world.compass.url, repository: "CCMRepo", database: "SAMPL"),
                as: .password(user: "fieldpost", password: "secret-of-all"), client: world.compass.client)
            let start = Timestamp.now()
            let request = PageRequest(
                scope: .comparison, own: nil, subset: .all,
                tracker: TrackerIDs(server: "s", repository: "r", database: "d"), position: 1, startPosition: 1,
                watermark: nil, since: CompassTime(clockSeconds: 0), watermarkMin: 0, isInitialRead: true)
            for (minutes, left) in [(0, 1), (59, 2), (61, 2), (122, 1)] {
                let now = Timestamp(millisecondsSinceEpoch: start.millisecondsSinceEpoch + Int64(minutes) * 60_000)
                let session = TrackerSession(compass, logger: Logger(label: "session"), now: { now })
                let response = await session.read(request)
                #expect(try response.result.get().cursor != nil)
                // Its own query, and those less than an hour old.
                #expect(world.compass.queryCount == left, "after \(minutes) minutes")
            }
        }
    }

    @Test func refusedAccountIsRetriedUntilAccepted() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.compass.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try await world.compass.switches(#"{"refusesLogins": true}"#)
            try world.startPoll()
            for _ in 0..<2 {
                guard case .deferred(_, _, .backendUnavailable) = try await world.finishPoll() else {
                    Issue.record("not deferred")
                    return
                }
            }
            try await world.compass.switches(#"{"refusesLogins": false}"#)
            let left = try await world.finishPoll()
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }

    @Test func changesDuringAnOutageAreNotifiedAfterIt() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            try await world.compass.behave(.failing)
            try await world.compass.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try world.startPoll()
            for _ in 0..<3 {
                guard case .deferred(_, _, .backendUnavailable) = try await world.finishPoll() else {
                    Issue.record("not deferred")
                    return
                }
            }
            try await world.compass.behave(.losingResponses)
            let lost = try await world.finishPoll()
            #expect(lost != nil)
            try await world.compass.behave(.normal)
            let left = try await world.finishPoll()
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }

    /// The server's clock shows local time, ten minutes wrong, and is set back between polls. Rows become visible some
    /// minutes after they are written.
    @Test(arguments: [-600, 600]) func clockSetBackLosesNoNotice(skew: Int) async throws {
        try await CompassWorld.run { world in
            let change = 1_792_890_000
            func time(_ minutes: Int) -> Timestamp {
                Timestamp(millisecondsSinceEpoch: Int64(change + minutes * 60) * 1_000)
            }
            try await world.compass.setClock(time(-70))
            try await world.compass.switches(
                #"{"zone": {"offsetMinutes": 60, "summer": "eu"}, "clockSkewSeconds": \#(skew), "visibleAfterMs": 240000}"#
            )
            try await world.compass.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await world.compass.setClock(time(-60))
            try await world.complete(at: time(-60))
            for minutes in stride(from: -55, through: 125, by: 5) {
                // Different seconds, so that no two rows are equal.
                let second = time(minutes).millisecondsSinceEpoch + Int64(minutes + 55) * 200
                try await world.compass.setClock(Timestamp(millisecondsSinceEpoch: second))
                if minutes <= 120 {
                    try await world.compass.change([
                        .init(record: "SAMPL00000001", action: "Modify", fields: ["Headline": "at \(minutes)"])
                    ])
                }
                try await world.complete(at: time(minutes))
            }
            #expect(try world.notices().count == 36)
        }
    }
}
