import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct SAPBackendTests {
    typealias Fixture = SAPFixture

    @Test func createdEntryIsReadBackReleased() async throws {
        try await Fixture.run { sap in
            let submission = Fixture.submission()
            let id = try await sap.backend.create(submission)
            let entry = try #require(try await sap.backend.readBack(id, of: Fixture.ana))
            #expect(
                entry
                    == BackendEntry(
                        id: id, marker: submission.marker, day: submission.day, durationSeconds: 5400,
                        text: "Ørsted \"1\"", status: .released, references: ["Accounting code": "P1.1"]))
            let recorded = try await sap.recorded()
            #expect(recorded.map(\.hours) == ["1.50"] && recorded.map(\.date) == ["2015-03-30"])
            #expect(recorded[0].person == "O'ana" && recorded[0].note == "Ørsted \"1\" " + submission.marker)
        }
    }

    @Test(arguments: [(17, "0.00"), (18, "0.01"), (53, "0.01"), (54, "0.02"), (28_800, "8.00"), (86_400, "24.00")])
    func secondsAreRoundedHalfUpToHours(seconds: Int, hours: String) async throws {
        try await Fixture.run { sap in
            if hours == "0.00" {
                await #expect(throws: BackendError.refused(["Enter a number of hours greater than 0"])) {
                    try await sap.backend.create(Fixture.submission(seconds: seconds))
                }
            } else {
                _ = try await sap.backend.create(Fixture.submission(seconds: seconds))
                #expect(try await sap.recorded().map(\.hours) == [hours])
            }
        }
    }

    @Test func tooManyHoursAreRefusedWithoutCall() async throws {
        try await Fixture.run { sap in
            await #expect(throws: BackendError.self) {
                try await sap.backend.create(Fixture.submission(seconds: 360_000))
            }
            let stats = try await sap.stats()
            #expect(stats["creates"] == nil)
        }
    }

    @Test func releaseApprovesRecordWithoutApprovalProcess() async throws {
        try await Fixture.run { sap in
            try await sap.switches(#"{"approvalNeeded": false}"#)
            let id = try await sap.backend.create(Fixture.submission())
            #expect(try await sap.backend.readBack(id, of: Fixture.ana)?.status == .approved)
        }
    }

    @Test func eachProblemHasItsOwnMessage() async throws {
        try await Fixture.run { sap in
            let submission = Fixture.submission(on: "2014-12-31", seconds: 90_000, element: "P9.9")
            await #expect(
                throws: BackendError.refused([
                    "Personnel assignment O'ana is not active on 2014-12-31",
                    "More than 24 hours on one day cannot be recorded", "WBS element P9.9 does not exist",
                ])
            ) { try await sap.backend.create(submission) }
            let recorded = try await sap.recorded()
            #expect(recorded.isEmpty)
        }
    }

    @Test func rehiredPersonIsActiveAgain() async throws {
        try await Fixture.run { sap in
            await #expect(
                throws: BackendError.refused(["Personnel assignment O'ana is not active on 2016-12-31"])
            ) { try await sap.backend.create(Fixture.submission(on: "2016-12-31")) }
            let id = try await sap.backend.create(Fixture.submission(on: "2017-01-01"))
            #expect(try await sap.backend.readBack(id, of: Fixture.ana)?.status == .released)
        }
    }

    @Test(arguments: [
        ("P1.3", "WBS element P1.3 is blocked for time recording"),
        ("P3.1", "Project P3 is blocked for time recording"),
    ]) func blockedElementsAreRefused(element: String, message: String) async throws {
        try await Fixture.run { sap in
            await #expect(throws: BackendError.refused([message])) {
                try await sap.backend.create(Fixture.submission(element: element))
            }
        }
    }

    @Test func lockedPeriodRefusesCreateUpdateAndDelete() async throws {
        try await Fixture.run { sap in
            let id = try await sap.backend.create(Fixture.submission())
            try await sap.switches(#"{"lockedThrough": "2015-03-31"}"#)
            let refusal = BackendError.refused(["The period is locked for time recording through 2015-03-31"])
            await #expect(throws: refusal) { try await sap.backend.create(Fixture.submission()) }
            await #expect(throws: refusal) { try await sap.backend.update(id, to: Fixture.submission()) }
            await #expect(throws: refusal) { try await sap.backend.delete(id, of: Fixture.ana, before: .never) }
        }
    }

    @Test func updateBeforeApprovalKeepsRecord() async throws {
        try await Fixture.run { sap in
            let entry = UUID()
            let id = try await sap.backend.create(Fixture.submission(entry))
            let changed = Fixture.submission(entry, on: "2015-03-31", seconds: 3600, text: nil, element: "P1.2")
            #expect(try await sap.backend.update(id, to: changed) == id)
            let matches = try await sap.backend.lookUp(marker: changed.marker, of: Fixture.ana, on: changed.day)
            #expect(matches.map(\.id) == [id])
            #expect(matches.first?.durationSeconds == 3600 && matches.first?.text == nil)
            let before = try await sap.backend.lookUp(
                marker: changed.marker, of: Fixture.ana, on: Fixture.day("2015-03-30"))
            #expect(before.isEmpty)
        }
    }

    @Test func updateAfterApprovalCreatesSuccessor() async throws {
        try await Fixture.run { sap in
            let entry = UUID()
            let old = try await sap.backend.create(Fixture.submission(entry))
            try await sap.post("/sandbox/approvals", #"{"record": "\#(old)", "status": "30"}"#)
            #expect(try await sap.backend.readBack(old, of: Fixture.ana)?.status == .approved)
            let changed = Fixture.submission(entry, seconds: 7200)
            let new = try await sap.backend.update(old, to: changed)
            #expect(new != old)
            #expect(try await sap.backend.readBack(old, of: Fixture.ana)?.status == .changed)
            #expect(try await sap.backend.readBack(new, of: Fixture.ana)?.status == .released)
            let matches = try await sap.backend.lookUp(marker: changed.marker, of: Fixture.ana, on: changed.day)
            #expect(matches.map(\.id) == [new])
            try await sap.post("/sandbox/approvals", #"{"record": "\#(new)", "status": "30"}"#)
            #expect(try await sap.backend.readBack(old, of: Fixture.ana)?.status == .cancelled)
        }
    }

    @Test func rejectionCanBeReverted() async throws {
        try await Fixture.run { sap in
            let id = try await sap.backend.create(Fixture.submission())
            for (code, status) in [
                ("40", BackendStatus.rejected), ("20", .released), ("30", .approved), ("20", .released),
            ] {
                try await sap.post("/sandbox/approvals", #"{"record": "\#(id)", "status": "\#(code)"}"#)
                #expect(try await sap.backend.readBack(id, of: Fixture.ana)?.status == status)
            }
        }
    }

    @Test func deletedRecordIsCancelledAndNotFoundByMarker() async throws {
        try await Fixture.run { sap in
            let submission = Fixture.submission()
            let id = try await sap.backend.create(submission)
            try await sap.backend.delete(id, of: Fixture.ana, before: .never)
            #expect(try await sap.backend.readBack(id, of: Fixture.ana)?.status == .cancelled)
            let matches = try await sap.backend.lookUp(marker: submission.marker, of: Fixture.ana, on: submission.day)
            #expect(matches.isEmpty)
            await #expect(throws: BackendError.self) {
                try await sap.backend.delete(id, of: Fixture.ana, before: .never)
            }
        }
    }

    @Test func unknownAndForeignRecordsAreAbsent() async throws {
        try await Fixture.run { sap in
            let id = try await sap.backend.create(Fixture.submission())
            #expect(try await sap.backend.readBack("000000000099", of: Fixture.ana) == nil)
            #expect(try await sap.backend.readBack(id, of: Fixture.bo) == nil)
        }
    }

    @Test func listingsArePagedAndLimitedToPersonAndDays() async throws {
        try await Fixture.run(settings: { $0.pageRowsMax = 3 }) { sap in
            for day in 1...9 {
                _ = try await sap.backend.create(Fixture.submission(on: "2015-03-0\(day)", seconds: day * 3600))
                _ = try await sap.backend.create(Fixture.submission(of: Fixture.bo, on: "2015-03-0\(day)"))
            }
            let entries = try await sap.backend.entries(
                of: Fixture.ana, from: Fixture.day("2015-03-02"), through: Fixture.day("2015-03-07"))
            #expect(entries.map(\.durationSeconds) == (2...7).map { $0 * 3600 })
        }
    }

    /// A record repeatedly leaves the listed days and returns, so that later pages shift and are read again.
    @Test func shiftingPagesSkipNoRecord() async throws {
        try await Fixture.run(settings: { $0.pageRowsMax = 3 }) { sap in
            let (inside, outside) = (Fixture.submission(on: "2015-03-02"), Fixture.submission(on: "2015-04-10"))
            let moving = try await sap.backend.create(inside)
            var still: [String] = []
            for _ in 0..<14 { still.append(try await sap.backend.create(Fixture.submission(on: "2015-03-05"))) }
            try await sap.switches(#"{"latencyMs": 2}"#)
            // It moves after a number of pages: on a machine of any speed, some reads are disturbed and others are not.
            let mover = Task {
                var (count, moveCount) = (0, 0)
                while !Task.isCancelled {
                    count += [3, 17, 11, 23, 7][moveCount % 5]
                    while try await sap.stats()["listings"] ?? 0 < count { try await Task.sleep(for: .milliseconds(1)) }
                    _ = try await sap.backend.update(moving, to: moveCount % 2 == 0 ? outside : inside)
                    moveCount += 1
                }
            }
            defer { mover.cancel() }
            // The first page has three rows of at most 15, the others two new ones; the last one is short.
            let quietMax = 8
            var (readCount, shiftedCount) = (0, 0)
            let isRead = try await sap.eventually {
                let before = try await sap.stats()["listings"] ?? 0
                do {
                    let entries = try await sap.backend.entries(
                        of: Fixture.ana, from: Fixture.day("2015-03-01"), through: Fixture.day("2015-03-31"))
                    #expect(entries.map(\.id).filter { $0 != moving } == still)
                    readCount += 1
                    if try await sap.stats()["listings"] ?? 0 > before + quietMax { shiftedCount += 1 }
                } catch BackendError.notProcessed {}
                return readCount >= 60 && shiftedCount >= 10
            }
            #expect(isRead, "\(readCount) readings, \(shiftedCount) of them of pages that shifted")
        }
    }

    @Test func wrongCredentialsAreUnauthorized() async throws {
        try await Fixture.run(password: "wrong") { sap in
            for call in [
                { _ = try await sap.backend.create(Fixture.submission()) },
                { _ = try await sap.backend.readBack("1", of: Fixture.ana) },
            ] {
                let error = await #expect(throws: BackendError.self) { try await call() }
                #expect(error?.kind == "unauthorized" && !"\(String(describing: error))".contains("wrong"))
            }
        }
    }

    @Test func personWithoutReferencesIsRefused() async throws {
        try await Fixture.run { sap in
            let unknown = BackendPerson(email: "x@example.com", reference: [:])
            await #expect(throws: BackendError.refused(["x@example.com has no personnel assignment in SAP"])) {
                try await sap.backend.create(Fixture.submission(of: unknown))
            }
        }
    }
}
