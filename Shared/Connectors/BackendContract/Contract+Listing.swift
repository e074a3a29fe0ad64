internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// Everybody's records together, for back ends that list them so.
extension Contract {
    static let listing = [
        Check("a listing of everybody has each person's records, and nobody else's", where: \.listsEverybody) {
            subject in
            let other = subject.harness.otherPerson
            for offset in [1, 4, 7] {
                _ = try await subject.backend.create(subject.submission(on: offset, seconds: 3600))
                var submission = subject.submission(on: offset + 1, seconds: 7200)
                submission.person = other
                _ = try await subject.backend.create(submission)
            }
            let deleted = try await subject.backend.create(subject.submission(on: 4))
            try await subject.backend.delete(deleted, of: subject.person, before: .never)
            for people in [[subject.person, other], [subject.person]] {
                let found = try await everything(of: people, subject)
                for person in people {
                    let alone = try await subject.backend.entries(
                        of: person, from: subject.day(0), through: subject.day(9))
                    try subject.expect(
                        Set(found[person.email] ?? []) == Set(alone)
                            && found[person.email]?.count ?? 0 == alone.count,
                        "the listing has \(found[person.email] ?? []) of \(person.email), alone there are \(alone)")
                }
                let strangers = Set(found.keys).subtracting(people.map(\.email))
                try subject.expect(strangers.isEmpty, "people who were not asked for are listed: \(strangers)")
            }
        },
        Check("a listing of everybody has its last day, and nothing beyond its days", where: \.listsEverybody) {
            subject in
            for offset in 2...5 { _ = try await subject.backend.create(subject.submission(on: offset)) }
            let (from, through) = (subject.day(3), subject.day(4))
            let listing = try await subject.backend.listing(of: [subject.person], from: from, through: through)
            try subject.expect(
                listing.from >= from && listing.from <= through,
                "the days \(from) through \(through) are asked for, and read from \(listing.from)")
            let days = Set((listing.entries[subject.person.email] ?? []).map(\.day))
            try subject.expect(
                days.contains(through) && days.allSatisfy { $0 >= listing.from && $0 <= through },
                "the records are of \(days), not of \(listing.from) through \(through)")
        },
        Check("a person without references costs the others nothing", where: \.listsEverybody) { subject in
            let nobody = BackendPerson(email: "nobody@contract.example", reference: [:])
            let id = try await subject.backend.create(subject.submission())
            let listing = try await subject.backend.listing(
                of: [nobody, subject.person], from: subject.day(0), through: subject.day(0))
            try subject.expect(
                listing.unreadable == [nobody.email], "what is not told of nobody counts: \(listing.unreadable)")
            try subject.expect(
                listing.entries[subject.person.email]?.contains { $0.id == id } == true, "the others are not listed")
        },
        Check("a listing of everybody that fails tells nothing", where: \.listsEverybody) { subject in
            _ = try await subject.backend.create(subject.submission())
            try await subject.harness.behave(.failing)
            let error = try await subject.error(of: "listing") {
                try await subject.backend.listing(of: [subject.person], from: subject.day(0), through: subject.day(9))
            }
            guard case .notProcessed = error else {
                throw Failure("a server error of listing is taken for \(error), not for notProcessed")
            }
        },
    ]

    /// The ten days, part by part.
    private static func everything(
        of people: [BackendPerson], _ subject: Subject
    ) async throws -> [String: [BackendEntry]] {
        var found: [String: [BackendEntry]] = [:]
        var through = subject.day(9)
        while through >= subject.day(0) {
            let part = try await subject.backend.listing(of: people, from: subject.day(0), through: through)
            try subject.expect(
                part.from <= through, "a listing through \(through) begins on \(part.from): it has no day")
            try subject.expect(part.unreadable.isEmpty, "the records of \(part.unreadable) cannot be read")
            for (email, entries) in part.entries { found[email, default: []] += entries }
            through = part.from.adding(days: -1)
        }
        return found
    }
}
