internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Checks of new records.
extension Contract {
    static let recording = [
        Check("a created entry is read back unchanged and released") { subject in
            let submission = subject.submission()
            let id = try await subject.backend.create(submission)
            let entry = try await subject.readBack(id)
            try subject.expect(entry.id == id, "readBack(\(id)) returns the record \(entry.id)")
            try subject.expect(entry, is: submission)
            try subject.expect(
                entry.status == .released || entry.status == .approved,
                "a new record is \(entry.status), not released (or approved, where no approval is needed)")
        },
        Check("a created entry is found once by its marker") { subject in
            let submission = subject.submission()
            _ = try await subject.backend.create(subject.submission(text: "Its neighbour"))
            try await subject.expect(0, of: submission, "before it is written")
            let id = try await subject.backend.create(submission)
            let matches = try await subject.lookUp(submission)
            try subject.expect(matches.map(\.id) == [id], "lookUp returns \(matches.map(\.id)), not [\(id)]")
        },
        Check("identical entries with different markers both exist") { subject in
            let submissions = [subject.submission(), subject.submission()]
            var ids: Set<String> = []
            for submission in submissions { ids.insert(try await subject.backend.create(submission)) }
            try subject.expect(ids.count == 2, "both have the id \(ids)")
            for submission in submissions { try await subject.expect(1, of: submission, "among identical ones") }
        },
        Check("a text is read back unchanged") { subject in
            for text in [nil, "Ørsted & \"Søn\" 'x' <b> 100 % + $(a)*,[b]", "🛠 日本", "#12#", "a\\b/c?d=e"] {
                let submission = subject.submission(text: text)
                let id = try await subject.backend.create(submission)
                try subject.expect(try await subject.readBack(id), is: submission)
            }
        },
        Check("the longest text is read back in full in any script") { subject in
            let limit = subject.backend.capabilities.textLimit
            let lengthMax = min(limit.lengthMax, 1_000)
            for part in ["a", "e\u{301}", "🛠", "👩🏽‍🚒", "กำ", "x\u{600}"] {
                let count = lengthMax / limit.length(of: part)
                let rest = String(repeating: "b", count: lengthMax - count * limit.length(of: part))
                let submission = subject.submission(text: rest + String(repeating: part, count: count))
                let id = try await subject.backend.create(submission)
                try subject.expect(try await subject.readBack(id), is: submission)
                try await subject.expect(1, of: submission, "with \(lengthMax) units of text")
            }
        },
        Check("a text that the back end alters keeps its marker") { subject in
            try await subject.harness.alterTexts()
            let submission = subject.submission(text: " two\r\nlines  🛠 ")
            let id = try await subject.backend.create(submission)
            let entry = try await subject.readBack(id)
            try subject.expect(
                entry.marker == submission.marker,
                "the record's marker is \(entry.marker ?? "none"), not \(submission.marker)")
            try await subject.expect(1, of: submission, "with an altered text")
            let new = subject.submission(submission.marker, seconds: 7200, text: "🛠  again ")
            let newID = try await subject.backend.update(id, to: new)
            let matches = try await subject.lookUp(new)
            try subject.expect(matches.map(\.id) == [newID], "lookUp returns \(matches.map(\.id)), not [\(newID)]")
        },
        Check("a length is rounded as the capabilities declare") { subject in
            for seconds in [5400, 28_800, 3599, 3600, 3617, 3618, 86_400] {
                let submission = subject.submission(on: seconds % 7, seconds: seconds)
                let id = try await subject.backend.create(submission)
                try subject.expect(try await subject.readBack(id), is: submission)
            }
        },
        Check("an invalid entry is refused with a message and not written") { subject in
            let submission = subject.submission(references: subject.harness.invalidReferences)
            try await subject.expectRefusal(of: "create with invalid references") {
                try await subject.backend.create(submission)
            }
            try await subject.expect(0, of: submission, "after a refusal")
        },
        Check("an entry of an unknown person is refused with a message") { subject in
            var submission = subject.submission()
            submission.person = BackendPerson(email: "nobody@example.com", reference: [:])
            try await subject.expectRefusal(of: "create for a person without references") {
                try await subject.backend.create(submission)
            }
        },
        Check("concurrent calls all succeed") { subject in
            let submissions = (0..<20).map { subject.submission(on: $0 % 5) }
            let ids = try await withThrowingTaskGroup(of: String.self) { group in
                for submission in submissions { group.addTask { try await subject.backend.create(submission) } }
                var ids: Set<String> = []
                for try await id in group { ids.insert(id) }
                return ids
            }
            try subject.expect(ids.count == submissions.count, "20 calls return \(ids.count) ids")
            for submission in submissions { try await subject.expect(1, of: submission, "written concurrently") }
        },
    ]
}
