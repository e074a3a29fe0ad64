internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Checks of updates, deletions and approvals.
extension Contract {
    static let changing = [
        Check("an updated entry has only its new values") { subject in
            let old = subject.submission()
            let id = try await subject.backend.create(old)
            let new = subject.submission(
                old.marker, on: 1, seconds: 7200, text: nil, references: subject.harness.otherReferences)
            let newID = try await subject.backend.update(id, to: new)
            try subject.expect(try await subject.readBack(newID), is: new)
            try await subject.expect(0, of: old, "on the day it was moved from")
            try await subject.expect(1, of: new, "on the day it was moved to")
        },
        Check("a deleted entry is absent or cancelled") { subject in
            let submission = subject.submission()
            let id = try await subject.backend.create(submission)
            try await subject.backend.delete(id, of: subject.person, before: .never)
            try await subject.expect(0, of: submission, "after its deletion")
            if let entry = try await subject.backend.readBack(id, of: subject.person) {
                try subject.expect(entry.status == .cancelled, "a deleted record is \(entry.status)")
            }
        },
        Check("an unknown id refers to no record") { subject in
            let id = subject.harness.unknownID
            let entry = try await subject.backend.readBack(id, of: subject.person)
            try subject.expect(entry == nil, "readBack of an unknown id returns \(String(describing: entry))")
            try await subject.expectRefusal(of: "update of an unknown id") {
                try await subject.backend.update(id, to: subject.submission())
            }
            try await subject.expectRefusal(of: "delete of an unknown id") {
                try await subject.backend.delete(id, of: subject.person, before: .never)
            }
        },
        Check("a record of another person is not accessible") { subject in
            let submission = subject.submission()
            let id = try await subject.backend.create(submission)
            let other = subject.harness.otherPerson
            let entry = try await subject.backend.readBack(id, of: other)
            try subject.expect(entry == nil, "readBack returns another person's record")
            let matches = try await subject.backend.lookUp(marker: submission.marker, of: other, on: submission.day)
            try subject.expect(matches.isEmpty, "lookUp returns another person's record")
            try await subject.expectRefusal(of: "delete of another person's record") {
                try await subject.backend.delete(id, of: other, before: .never)
            }
            try await subject.expect(1, of: submission, "after another person tried to delete it")
        },
        Check("an approved entry is final", where: { $0.approvedRecord == .isFinal }) { subject in
            let submission = subject.submission()
            let id = try await approved(submission, subject)
            try await subject.expectRefusal(of: "update of an approved record") {
                try await subject.backend.update(id, to: subject.submission(submission.marker, seconds: 7200))
            }
            try await subject.expectRefusal(of: "delete of an approved record") {
                try await subject.backend.delete(id, of: subject.person, before: .never)
            }
            try subject.expect(try await subject.readBack(id), is: submission)
        },
        Check("an approved entry is replaced", where: { $0.approvedRecord == .isReplaced }) { subject in
            let submission = subject.submission()
            let id = try await approved(submission, subject)
            let new = subject.submission(submission.marker, seconds: 7200)
            let newID = try await subject.backend.update(id, to: new)
            let entry = try await subject.readBack(newID)
            try subject.expect(entry, is: new)
            try subject.expect(
                entry.status == .released || entry.status == .approved, "the successor is \(entry.status)")
            let matches = try await subject.lookUp(new)
            try subject.expect(matches.map(\.id) == [newID], "lookUp returns \(matches.map(\.id)), not [\(newID)]")
        },
        Check("a rejected entry is reported and can be corrected", where: \.hasRejection) { subject in
            let submission = subject.submission()
            let id = try await subject.backend.create(submission)
            try await subject.harness.reject(id)
            let status = try await subject.readBack(id).status
            try subject.expect(status == .rejected, "a rejected record is \(status)")
            let new = subject.submission(submission.marker, seconds: 7200)
            let newID = try await subject.backend.update(id, to: new)
            let corrected = try await subject.readBack(newID)
            try subject.expect(corrected, is: new)
            try subject.expect(corrected.status == .released, "a corrected record is \(corrected.status)")
        },
    ]

    private static func approved(_ submission: Submission, _ subject: ContractSubject) async throws -> String {
        let id = try await subject.backend.create(submission)
        try await subject.harness.approve(id)
        let status = try await subject.readBack(id).status
        try subject.expect(
            status == .approved || status == .recorded, "an approved record is \(status)")
        return id
    }
}
