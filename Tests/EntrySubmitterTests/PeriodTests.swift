import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import KeyedWorker

/// Closed periods, and entries with a start and an end.
@Suite(.ownThreads) struct PeriodTests {
    private typealias World = BackendWorld
    private let id = UUID()

    /// A new entry is invalid with the back end's message; an entry with a record is reverted; changes after the period
    /// was reopened succeed.
    @Test(arguments: BackendWorld.Vendor.allCases) func closedPeriodRefusesWithBackendMessage(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            let record = try await world.release(id)
            try await world.switches(#"{"lockedThrough": "2015-03-31"}"#)
            let refusal =
                vendor == .sap
                ? "The period is locked for time recording through 2015-03-31"
                : "Time entry cannot be created, updated or approved, it is in a closed accounting period."

            let late = UUID()
            try world.put(late, world.draft())
            try await world.work(late)
            #expect(try world.entry(late)?.status == .invalid)
            #expect(try world.entry(late)?.backendId == nil)
            #expect(try world.lines(late).last?.message == refusal)

            try world.edit(id) { ($0.durationSeconds, $0.text) = (7_200, "more") }
            try await world.work(id)
            let restored = try #require(try world.entry(id))
            #expect(restored.durationSeconds == 5_400 && restored.text == "survey" && restored.status == .released)
            #expect(try world.lines(id).last?.message == refusal)
            try world.edit(id) { $0.deleteRequested = true }
            try await world.work(id)
            #expect(try world.entry(id)?.deleteRequested == false)
            #expect(try await world.record(record).durationSeconds == 5_400)

            try await world.switches(#"{"lockedThrough": null}"#)
            // A refused edit is not requested any more, until the device requests it again.
            try await world.work(id)
            #expect(try await world.record(record).durationSeconds == 5_400)
            for entry in [id, late] {
                try world.edit(entry) { $0.durationSeconds = 7_200 }
                try await world.work(entry)
                let current = try #require(try world.entry(entry))
                #expect(current.status == .released && current.durationSeconds == 7_200)
                #expect(try await world.record(try #require(current.backendId)).durationSeconds == 7_200)
            }
            try world.edit(id) { $0.deleteRequested = true }
            try await world.work(id)
            #expect(try world.entry(id) == nil)
        }
    }

    /// 8:00 to 9:30:10 is 1.50 hours in the back end. While its hours are equal, start and end are kept, regardless of
    /// other changes of the record; other hours are a duration.
    @Test(arguments: BackendWorld.Vendor.allCases) func startAndEndAreKeptWhileHoursAreEqual(
        vendor: BackendWorld.Vendor
    ) async throws {
        try await World.run(vendor) { world in
            var interval = world.draft()
            interval.timeType = .interval
            interval.durationSeconds = nil
            interval.startTime = ZonedTime("2015-03-30T08:00:00+02:00")
            interval.endTime = ZonedTime("2015-03-30T09:30:10+02:00")
            let record = try await world.release(id, interval)
            #expect(try await world.record(record).durationSeconds == 5_400)
            try await world.poll()
            #expect(try isInterval(&world))

            // Another text was changed by a colleague, and is not another time.
            try await change(record, "harbour", 5_400, world)
            try await world.poll()
            #expect(try world.entry(id)?.text == "harbour")
            #expect(try isInterval(&world))

            // A refused edit restores them.
            try await world.switches(#"{"lockedThrough": "2015-03-31"}"#)
            try world.edit(id) { $0.endTime = ZonedTime("2015-03-30T12:00:00+02:00") }
            try await world.work(id)
            #expect(try isInterval(&world))
            try await world.switches(#"{"lockedThrough": null}"#)

            try await change(record, "harbour", 7_200, world)
            try await world.poll()
            let entry = try #require(try world.entry(id))
            #expect(entry.timeType == .duration && entry.durationSeconds == 7_200)
            #expect(entry.startTime == nil && entry.endTime == nil)
        }
    }

    @Test func rateLimitsArePerEnvironment() async throws {
        try await World.run(.economic) { world in
            #expect(try world.rates() == CallRateLimits())
            try world.acme.connection.run(
                "UPDATE backend.connection SET calls_per_second = 20, person_calls_per_second = 5")
            #expect(try world.rates() == CallRateLimits(perSecond: 20, perPersonAndSecond: 5))
        }
    }

    private func isInterval(_ world: inout BackendWorld) throws -> Bool {
        let entry = try #require(try world.entry(id))
        return entry.timeType == .interval && entry.startTime == ZonedTime("2015-03-30T08:00:00+02:00")
            && entry.endTime == ZonedTime("2015-03-30T09:30:10+02:00")
    }

    /// Changes the record in the back end as a colleague does.
    private func change(
        _ record: String, _ text: String, _ seconds: Int, _ world: borrowing BackendWorld
    ) async throws {
        let entry = try await world.record(record)
        _ = try await world.backend.update(
            record,
            to: Submission(
                marker: try #require(entry.marker), person: world.person, day: entry.day, durationSeconds: seconds,
                text: text, references: entry.references))
    }
}
