import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import BackendPoller

/// The poller with wrong clocks, a PostgreSQL database and an e-conomic sandbox over HTTP: no change is missed, and
/// none is written twice.
@Suite(.ownThreads) struct PollerClockTests {
    @Test func nextRunWritesOnlyChanges() async throws {
        try await PollerWorld.run { world in
            let first = try await world.create(of: 0)
            try await world.completeRun(isFull: true)
            #expect(try world.seen(of: 0) == [try await world.record(first, of: 0)])
            // Four calls, each with a new caller, share one adapter.
            #expect(try await world.stats("projectListings") == 1)
            let listingCount = try await world.stats("listings")
            let second = try await world.create(of: 1)
            try await world.post("/sandbox/entries", #"{"number": \#(first), "isApproved": true}"#)
            // A person who is not in Fieldpost works too.
            try await world.post(
                "/sandbox/entries", #"{"employeeNumber": 10, "projectNumber": 11, "date": "\#(PollerWorld.today)"}"#)
            try await world.completeRun(isFull: false)
            #expect(try world.seen(of: 0) == [try await world.record(first, of: 0)])
            #expect(try world.seen(of: 1) == [try await world.record(second, of: 1)])
            #expect(try await world.stats("listings") == listingCount + 1, "one page for the records of all people")
        }
    }

    @Test func pendingChangePollIsKeptAndNewPersonIsCompared() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            try world.beginRun(isFull: false)
            let changes = RealmContents.pollID(of: Poll.changesPerson)
            #expect(try world.openPolls() == [changes])
            let run = try world.run(of: changes)
            try world.addPerson("new@example.com", 10)
            try world.beginRun(isFull: false)
            #expect(try world.run(of: changes) == run)
            #expect(try world.openPolls().count == 2)
            try await world.finishPolls()
            try world.beginRun(isFull: false)
            #expect(try world.openPolls() == [changes] && (try world.run(of: changes)) > run)
        }
    }

    /// A new project does not wait for the full comparison that is due in an hour.
    @Test func changedChoicesMakeNextRunFull() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            try await world.post(
                "/sandbox/organisation",
                #"{"employees": [], "projects": [{"number": 12, "name": "Cranes"}], "activities": []}"#)
            try world.restart()
            try await world.completeRun(isFull: false)
            #expect(try world.names(of: .reportingTreeNode).contains("Cranes") == false)
            try world.beginRun()
            #expect(try world.openPolls().count == 4)
            try await world.finishPolls()
            // Catalogues are reconciled after all people were read.
            try world.beginRun()
            #expect(try world.names(of: .reportingTreeNode).contains("Cranes"))
            #expect(try world.openPolls().count == 1)
        }
    }

    @Test func resultOfSupersededChangePollWritesNothing() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            _ = try await world.create(of: 0)
            try world.beginRun(isFull: false)
            let (changes, before) = (RealmContents.pollID(of: Poll.changesPerson), try world.watermark())
            try await world.step(changes)
            try world.overtake(changes)
            try await world.step(changes)
            #expect(try world.seen(of: 0).isEmpty && (try world.watermark()) == before)
            try await world.finishPolls()
            #expect(try world.seen(of: 0).count == 1)
        }
    }

    @Test func repeatedChangesWriteNothing() async throws {
        try await PollerWorld.run { world in
            for person in 0..<3 { _ = try await world.create(of: person) }
            for isFull in [true, false] { try await world.completeRun(isFull: isFull) }
            let position = try world.position()
            for isFull in [false, true, false] { try await world.completeRun(isFull: isFull) }
            #expect(try world.position() == position)
        }
    }

    /// A page is written with its watermark, or not at all.
    @Test func watermarkIsWrittenWithItsPage() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            for _ in 0..<5 { _ = try await world.create(of: 0) }
            try await world.post("/sandbox/switches", #"{"pageItemsMax": 2}"#)
            try world.beginRun(isFull: false)
            let before = try world.watermark()
            let poll = RealmContents.pollID(of: Poll.changesPerson)
            try await world.step(poll)
            try await world.step(poll, isLost: true)
            #expect(try world.watermark() == before && (try world.seen(of: 0)).isEmpty)
            try world.crash()
            for count in [2, 4] {
                try await world.step(poll)
                try await world.step(poll)
                #expect(try world.watermark() != before && (try world.seen(of: 0)).count == count)
                // Killed between two pages, it resumes there.
                try world.crash()
            }
            try await world.finishPolls()
            #expect(try world.seen(of: 0).count == 5)
            #expect(world.written.values.allSatisfy { $0.count == 1 })
        }
    }

    /// Two workers have the result of one request; the one that writes last is late.
    @Test func pageIsWrittenOnlyAfterPreviousPage() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            for _ in 0..<5 { _ = try await world.create(of: 0) }
            // All changes are already observed: only the watermark stops the late worker.
            try await world.completeRun(isFull: false)
            try await world.post("/sandbox/switches", #"{"pageItemsMax": 2}"#)
            try world.beginRun(isFull: false)
            let poll = RealmContents.pollID(of: Poll.changesPerson)
            try await world.step(poll)
            let late = try world.prepare([poll])
            for _ in 0..<2 { try await world.step(poll) }
            let watermark = try world.watermark()
            #expect(try late.commit(on: &world.acme.connection).conflicts == [0])
            #expect(try world.watermark() == watermark)
        }
    }

    /// A full comparison read a record before it was changed, and is written after the change was reported.
    @Test(arguments: [true, false]) func olderComparisonDoesNotOverwriteNewerChange(isCreated: Bool) async throws {
        try await PollerWorld.run { world in
            var number = isCreated ? 0 : try await world.create(of: 0)
            try await world.completeRun(isFull: true)
            try world.beginRun(isFull: true)
            let ana = RealmContents.pollID(of: PollerWorld.people[0].0)
            try await world.step(ana)
            if isCreated {
                number = try await world.create(of: 0)
            } else {
                try await world.post("/sandbox/entries", #"{"number": \#(number), "isApproved": true}"#)
            }
            let changes = RealmContents.pollID(of: Poll.changesPerson)
            while try world.openPolls().contains(changes) { try await world.step(changes) }
            let position = try world.position()
            #expect(try world.seen(of: 0) == [try await world.record(number, of: 0)])
            try await world.step(ana)
            #expect(try world.position() == position)
            #expect(try world.seen(of: 0) == [try await world.record(number, of: 0)])
        }
    }

    /// The reverse: the change was read before a full comparison read and wrote the newer state.
    @Test func olderPageDoesNotOverwriteNewerComparison() async throws {
        try await PollerWorld.run { world in
            let number = try await world.create(of: 0)
            try await world.completeRun(isFull: true)
            try await world.post("/sandbox/entries", #"{"number": \#(number), "numberOfHours": 2}"#)
            try world.beginRun(isFull: true)
            let changes = RealmContents.pollID(of: Poll.changesPerson)
            try await world.step(changes)
            try await world.post("/sandbox/entries", #"{"number": \#(number), "numberOfHours": 3}"#)
            let ana = RealmContents.pollID(of: PollerWorld.people[0].0)
            for _ in 0..<2 { try await world.step(ana) }
            #expect(try world.seen(of: 0) == [try await world.record(number, of: 0)])
            let position = try world.position()
            while try world.openPolls().contains(changes) { try await world.step(changes) }
            #expect(try world.position() == position)
        }
    }

    /// Records are created, changed, moved and deleted; clocks are wrong by ten minutes; some records become visible
    /// late, many share a time stamp; pages of two shift while they are read; workers crash at every step.
    @Test(arguments: Seeds.random(4, for: "the poller under bad clocks"))
    func changesAreWrittenExactlyOnceDespiteBadClocks(seed: UInt64) async throws {
        try await PollerWorld.run { world in
            var life = BackendActivity(seed: seed)
            try await life.begin(&world)
            for _ in 0..<160 { try await life.step(&world) }
            // Later changes are reported by the change feed, without comparisons.
            try await world.finishPolls()
            life.isCompared = false
            for _ in 0..<60 { try await life.step(&world) }
            try await world.post("/sandbox/switches", #"{"visibleAfterMs": 0}"#)
            try await life.expectAllObserved(&world, isFull: false)
            try await life.expectAllObserved(&world, isFull: true)
            let position = try world.position()
            for isFull in [false, true] { try await world.completeRun(isFull: isFull) }
            #expect(try world.position() == position, "seed \(seed)")
            for (key, versions) in world.written {
                for (before, after) in zip(versions, versions.dropFirst()) where before != "gone" {
                    #expect(before < after, "seed \(seed): \(key.id.text) \(versions)")
                }
            }
        }
    }
}
