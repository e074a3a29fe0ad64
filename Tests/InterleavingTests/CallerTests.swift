import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import Testing

@testable import EntrySubmitter

/// What the submitter makes of records that somebody else deleted or replaced meanwhile.
@Suite struct CallerTests {
    private let person = BackendPerson(email: "person0@example.com", reference: SAPOffice.reference(0))
    private let day = Day(daysSinceEpoch: 20_000)
    private let marker = EntryMarker.marker(of: UUID())

    private func wanted(_ seconds: Int) -> Wanted {
        Wanted(
            day: day, durationSeconds: seconds, text: "work", references: ["Accounting code": "P1.1"],
            fields: TimeEntry())
    }

    @Test func aRefusalOfARecordThatIsGoneSaysThatItIsGone() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(wanted(3_600).submission(marker, person, .never))
            try await office.backend.delete(id, of: person, before: .never)
            for action in [SubmissionCall.Action.delete(id: id), .update(id: id, wanted(7_200))] {
                let answer = await caller.call(
                    SubmissionCall(action: action, version: 1), marker: marker, person: person, before: .never)
                #expect(answer == .absent, "\(action)")
            }
        }
    }

    /// An approved record that is changed has a successor, on a day that need not be known.
    @Test func theSuccessorOfARecordIsFound() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(wanted(3_600).submission(marker, person, .never))
            let status = try await office.post("/sandbox/approvals", #"{"record": "\#(id)", "status": "30"}"#)
            try #require(status == 200)
            let successor = try await office.backend.update(id, to: wanted(5_400).submission(marker, person, .never))
            #expect(successor != id)
            let actions: [SubmissionCall.Action] = [
                .find(id: id, days: [day.adding(days: 1)]), .delete(id: id), .update(id: id, wanted(7_200)),
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

    /// Nobody knows yet that it was written, and somebody approves it and moves it: it is not written again.
    @Test func aRecordThatWasMovedIsFound() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(wanted(3_600).submission(marker, person, .never))
            let status = try await office.post("/sandbox/approvals", #"{"record": "\#(id)", "status": "30"}"#)
            try #require(status == 200)
            var moved = wanted(3_600).submission(marker, person, .never)
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

    /// What is refused for its values is refused.
    @Test func aRefusalOfARecordThatIsThereIsARefusal() async throws {
        try await withOffice(SAPOffice.self) { office in
            let caller = SubmissionCaller(backend: office.backend)
            let id = try await office.backend.create(wanted(3_600).submission(marker, person, .never))
            let answer = await caller.call(
                SubmissionCall(action: .update(id: id, wanted(25 * 3_600)), version: 1), marker: marker, person: person,
                before: .never)
            guard case .refused = answer else {
                Issue.record("\(answer)")
                return
            }
        }
    }
}
