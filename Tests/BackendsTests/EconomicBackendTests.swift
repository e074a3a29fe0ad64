import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct EconomicBackendTests {
    typealias Fixture = EconomicFixture

    @Test func createdEntryIsReadBackReleased() async throws {
        try await Fixture.run { economic in
            let submission = Fixture.submission()
            let id = try await economic.backend.create(submission)
            var entry = try #require(try await economic.backend.readBack(id, of: Fixture.ana))
            #expect(entry.version?.count == "2015-03-30T00:00:00Z".count)
            entry.version = nil
            #expect(
                entry
                    == BackendEntry(
                        id: "1", marker: submission.marker, day: submission.day, durationSeconds: 5400,
                        text: "Ørsted \"1\"", status: .released, references: ["Project": "11", "Activity": "1"]))
            let recorded = try #require(try await economic.recorded().first)
            #expect(recorded.numberOfHours == 1.5 && recorded.employeeNumber == 7 && recorded.date == "2015-03-30")
            #expect(recorded.text == "Ørsted \"1\" " + submission.marker)
        }
    }

    @Test(arguments: [(17, 0.0), (18, 0.01), (53, 0.01), (54, 0.02), (12_060, 3.35), (86_400, 24.0)])
    func secondsAreRoundedHalfUpToHours(seconds: Int, hours: Double) async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission(seconds: seconds))
            #expect(try await economic.recorded().map(\.numberOfHours) == [hours])
            let entry = try await economic.backend.readBack(id, of: Fixture.ana)
            #expect(entry?.durationSeconds == (seconds + 18) / 36 * 36)
        }
    }

    @Test func hoursOfOtherClientsAreRoundedToTwoDecimals() async throws {
        try await Fixture.run { economic in
            try await economic.change(#"{"employeeNumber": 7, "date": "2015-03-30", "numberOfHours": 0.3333333}"#)
            let entry = try await economic.backend.readBack("1", of: Fixture.ana)
            #expect(entry?.durationSeconds == 33 * 36 && entry?.marker == nil && entry?.text == nil)
        }
    }

    struct Choice: Sendable {
        var project: String? = "11"
        var activity: String? = "1"
        let message: String
    }

    static let impossible = [
        Choice(project: "10", message: "Entries not allowed on a main project."),
        Choice(project: "14", message: "Entries not allowed on a closed project."),
        Choice(project: "99", message: "Entries not allowed on an inexistent project."),
        Choice(
            activity: "3", message: "Time entry cannot be created or updated since the provided activity is barred."),
        Choice(
            activity: "4",
            message: "Time entry cannot be created or updated since the provided activity is not part of the provided"
                + " project."),
        Choice(activity: "2", message: "Time entry cannot be created or updated since the activity is completed."),
        Choice(project: "x", message: "Project x is not in e-conomic"),
        Choice(project: nil, message: "No Project is selected"),
        Choice(activity: nil, message: "No Activity is selected"),
    ]

    @Test(arguments: impossible) func invalidChoiceIsRefusedWithMessage(choice: Choice) async throws {
        try await Fixture.run { economic in
            await #expect(throws: BackendError.refused([choice.message])) {
                try await economic.backend.create(
                    Fixture.submission(project: choice.project, activity: choice.activity))
            }
            let stats = try await economic.stats()
            #expect(stats["records"] == 0)
        }
    }

    @Test func closedPeriodRefusesCreateUpdateAndDelete() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"lockedThrough": "2015-03-31"}"#)
            let refusal = BackendError.refused([
                "Time entry cannot be created, updated or approved, it is in a closed accounting period."
            ])
            await #expect(throws: refusal) { try await economic.backend.create(Fixture.submission()) }
            await #expect(throws: refusal) { try await economic.backend.update(id, to: Fixture.submission()) }
            await #expect(throws: refusal) { try await economic.backend.delete(id, of: Fixture.ana, before: .never) }
        }
    }

    @Test func entryIsReleasedThenApprovedThenRecorded() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            func status() async throws -> BackendStatus? {
                try await economic.backend.readBack(id, of: Fixture.ana)?.status
            }
            try await economic.change(#"{"number": 1, "isApproved": true}"#)
            #expect(try await status() == .approved)
            try await economic.change(#"{"number": 1, "isReconciled": true}"#)
            #expect(try await status() == .recorded)
            try await economic.change(#"{"number": 1, "isApproved": false, "isReconciled": false}"#)
            #expect(try await status() == .released)
        }
    }

    @Test func approvedEntryCannotBeChangedOrDeleted() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.change(#"{"number": 1, "isApproved": true}"#)
            let refusal = BackendError.refused(["Time entry cannot be updated or deleted since it is approved."])
            await #expect(throws: refusal) { try await economic.backend.update(id, to: Fixture.submission()) }
            await #expect(throws: refusal) { try await economic.backend.delete(id, of: Fixture.ana, before: .never) }
        }
    }

    @Test func updateKeepsNumberAndMovesDay() async throws {
        try await Fixture.run { economic in
            let entry = UUID()
            let id = try await economic.backend.create(Fixture.submission(entry))
            let changed = Fixture.submission(
                entry, on: "2015-03-31", seconds: 3600, text: nil, project: "13", activity: "2")
            #expect(try await economic.backend.update(id, to: changed) == id)
            let matches = try await economic.backend.lookUp(marker: changed.marker, of: Fixture.ana, on: changed.day)
            #expect(matches.map(\.id) == [id] && matches.first?.durationSeconds == 3600 && matches.first?.text == nil)
            #expect(matches.first?.references == ["Project": "13", "Activity": "2"])
            let before = try await economic.backend.lookUp(
                marker: changed.marker, of: Fixture.ana, on: SAPFixture.day("2015-03-30"))
            #expect(before.isEmpty)
        }
    }

    @Test func deletedEntryIsAbsent() async throws {
        try await Fixture.run { economic in
            let submission = Fixture.submission()
            let id = try await economic.backend.create(submission)
            try await economic.backend.delete(id, of: Fixture.ana, before: .never)
            #expect(try await economic.backend.readBack(id, of: Fixture.ana) == nil)
            let matches = try await economic.backend.lookUp(
                marker: submission.marker, of: Fixture.ana, on: submission.day)
            #expect(matches.isEmpty)
            await #expect(throws: BackendError.refused(["Time entry 1 does not exist"])) {
                try await economic.backend.delete(id, of: Fixture.ana, before: .never)
            }
        }
    }

    @Test func entryOfAnotherPersonIsAbsentAndUnchanged() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            for unknown in [id, "99", "0", "x"] {
                #expect(try await economic.backend.readBack(unknown, of: Fixture.bo) == nil)
                await #expect(throws: BackendError.refused(["Time entry \(unknown) does not exist"])) {
                    try await economic.backend.delete(unknown, of: Fixture.bo, before: .never)
                }
            }
            await #expect(throws: BackendError.self) {
                try await economic.backend.update(id, to: Fixture.submission(of: Fixture.bo))
            }
            let recorded = try await economic.recorded()
            #expect(recorded.map(\.employeeNumber) == [7] && recorded.map(\.isDeleted) == [false])
        }
    }

    @Test func listingsReadAllPagesOfRequestedPersonAndDays() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"pageItemsMax": 2}"#)
            for day in (1...9).reversed() {
                _ = try await economic.backend.create(
                    Fixture.submission(on: "2015-03-0\(day)", seconds: day * 3600))
                _ = try await economic.backend.create(Fixture.submission(of: Fixture.bo, on: "2015-03-0\(day)"))
            }
            let entries = try await economic.backend.entries(
                of: Fixture.ana, from: SAPFixture.day("2015-03-02"), through: SAPFixture.day("2015-03-07"))
            #expect(entries.map(\.durationSeconds) == (2...7).reversed().map { $0 * 3600 })
            #expect(try await economic.stats()["listings"] == 3)
        }
    }

    @Test func endlessListingFailsWithoutTruncation() async throws {
        try await Fixture.run(settings: { $0.pagesMax = 2 }) { economic in
            try await economic.switches(#"{"pageItemsMax": 1}"#)
            for _ in 0..<3 { _ = try await economic.backend.create(Fixture.submission()) }
            let day = SAPFixture.day("2015-03-30")
            let error = await #expect(throws: BackendError.self) {
                try await economic.backend.entries(of: Fixture.ana, from: day, through: day)
            }
            #expect(error == .notProcessed(reason: "/timeentries has more than 2 pages", retryAfter: nil))
        }
    }

    @Test func personWithoutNumberIsRefused() async throws {
        try await Fixture.run { economic in
            let unknown = BackendPerson(email: "x@example.com", reference: [:])
            await #expect(throws: BackendError.refused(["x@example.com has no employee number in e-conomic"])) {
                try await economic.backend.create(Fixture.submission(of: unknown))
            }
        }
    }
}
