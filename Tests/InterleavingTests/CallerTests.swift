import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// Calls of the submitter on records that the office deleted or replaced meanwhile.
@Suite(.ownThreads) struct CallerTests {
    private let person = BackendPerson(email: "person0@example.com", reference: SAPOffice.reference(0))
    private let day = Day(daysSinceEpoch: 20_000)
    private let marker = EntryMarker.marker(of: UUID())

    private func desired(_ seconds: Int) -> DesiredRecord {
        DesiredRecord(
            day: day, durationSeconds: seconds, text: "work", references: ["Accounting code": "P1.1"],
            fields: TimeEntry())
    }

    @Test func rejectedWriteReportsDeletedRecord() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(desired(3_600).submission(marker, person, .never))
            try await office.backend.delete(id, of: person, before: .never)
            for action in [SubmissionCall.Action.delete(id: id), .update(id: id, desired(7_200))] {
                let answer = await caller.call(
                    SubmissionCall(action: action, version: 1), marker: marker, person: person, before: .never)
                #expect(answer == .absent, "\(action)")
            }
        }
    }

    /// An approved record that is changed has a successor, on a day that may be unknown.
    @Test func successorOfARecordIsReturned() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(desired(3_600).submission(marker, person, .never))
            let status = try await office.control("/sandbox/approvals", #"{"record": "\#(id)", "status": "30"}"#)
            try #require(status == 200)
            let successor = try await office.backend.update(id, to: desired(5_400).submission(marker, person, .never))
            #expect(successor != id)
            let actions: [SubmissionCall.Action] = [
                .find(id: id, days: [day.adding(days: 1)]), .delete(id: id), .update(id: id, desired(7_200)),
            ]
            for action in actions {
                let answer = await caller.call(
                    SubmissionCall(action: action, version: 1), marker: marker, person: person, before: .never)
                switch (action, answer) {
                case (.find, .record(let record)), (.delete, .successor(let record)), (.update, .successor(let record)):
                    #expect(record.id == successor, "\(action)")
                default: Issue.record("\(action): \(answer)")
                }
            }
        }
    }

    /// Before the write's outcome is known, the office approves the record and moves it: it is not written again.
    @Test func movedRecordIsReturned() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(desired(3_600).submission(marker, person, .never))
            let status = try await office.control("/sandbox/approvals", #"{"record": "\#(id)", "status": "30"}"#)
            try #require(status == 200)
            var moved = desired(3_600).submission(marker, person, .never)
            moved.day = day.adding(days: 20)
            let successor = try await office.backend.update(id, to: moved)
            #expect(successor != id)
            let answer = await caller.call(
                SubmissionCall(action: .find(id: nil, days: [day]), version: 1), marker: marker, person: person,
                before: .never)
            guard case .record(let record) = answer else {
                Issue.record("\(answer)")
                return
            }
            #expect(record.id == successor)
        }
    }

    /// A write with invalid values is rejected.
    @Test func rejectedWriteOfExistingRecordIsReported() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(desired(3_600).submission(marker, person, .never))
            let answer = await caller.call(
                SubmissionCall(action: .update(id: id, desired(25 * 3_600)), version: 1), marker: marker,
                person: person,
                before: .never)
            guard case .refused = answer else {
                Issue.record("\(answer)")
                return
            }
        }
    }
}
