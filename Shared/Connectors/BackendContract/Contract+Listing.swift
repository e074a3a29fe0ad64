internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// Checks of bulk listings, for back ends that have them.
extension Contract {
    static let listing = [
        Check("a bulk listing has the records of each requested person only", where: \.supportsBulkListing) {
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
                let matches = try await everything(of: people, subject)
                for person in people {
                    let alone = try await subject.backend.entries(
                        of: person, from: subject.day(0), through: subject.day(9))
                    try subject.expect(
                        Set(matches[person.email] ?? []) == Set(alone)
                            && matches[person.email]?.count ?? 0 == alone.count,
                        "the listing has \(matches[person.email] ?? []) of \(person.email); read alone: \(alone)")
                }
                let others = Set(matches.keys).subtracting(people.map(\.email))
                try subject.expect(others.isEmpty, "people who were not requested are listed: \(others)")
            }
        },
        Check("a bulk listing covers its last day and nothing outside its days", where: \.supportsBulkListing) {
            subject in
            for offset in 2...5 { _ = try await subject.backend.create(subject.submission(on: offset)) }
            let (from, through) = (subject.day(3), subject.day(4))
            let listing = try await subject.backend.listing(of: [subject.person], from: from, through: through)
            try subject.expect(
                listing.from >= from && listing.from <= through,
                "the days \(from) through \(through) are requested, and read from \(listing.from)")
            let days = Set((listing.entries[subject.person.email] ?? []).map(\.day))
            try subject.expect(
                days.contains(through) && days.allSatisfy { $0 >= listing.from && $0 <= through },
                "the records are of \(days), not of \(listing.from) through \(through)")
        },
        Check("a bulk listing reports a person without references as unreadable", where: \.supportsBulkListing) {
            subject in
            let unknown = BackendPerson(email: "nobody@contract.example", reference: [:])
            let id = try await subject.backend.create(subject.submission())
            let listing = try await subject.backend.listing(
                of: [unknown, subject.person], from: subject.day(0), through: subject.day(0))
            try subject.expect(
                listing.unreadable == [unknown.email], "people with unreadable records: \(listing.unreadable)")
            try subject.expect(
                listing.entries[subject.person.email]?.contains { $0.id == id } == true, "other people are not listed")
        },
        Check("a bulk listing fails on a server error", where: \.supportsBulkListing) { subject in
            _ = try await subject.backend.create(subject.submission())
            try await subject.harness.behave(.failing)
            let error = try await subject.error(of: "listing") {
                try await subject.backend.listing(of: [subject.person], from: subject.day(0), through: subject.day(9))
            }
            guard case .notProcessed = error else {
                throw Failure("a server error of listing is reported as \(error), not as notProcessed")
            }
        },
    ]

    /// Lists the ten days, call by call.
    private static func everything(
        of people: [BackendPerson], _ subject: ContractSubject
    ) async throws -> [String: [BackendEntry]] {
        var entriesByEmail: [String: [BackendEntry]] = [:]
        var through = subject.day(9)
        while through >= subject.day(0) {
            let part = try await subject.backend.listing(of: people, from: subject.day(0), through: through)
            try subject.expect(
                part.from <= through, "a listing through \(through) begins on \(part.from), without a day")
            try subject.expect(part.unreadable.isEmpty, "the records of \(part.unreadable) cannot be read")
            for (email, entries) in part.entries { entriesByEmail[email, default: []] += entries }
            through = part.from.adding(days: -1)
        }
        return entriesByEmail
    }
}
