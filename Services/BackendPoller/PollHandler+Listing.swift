import BackendConnections
import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Bulk listings, read some days per call.
extension PollHandler {
    /// Maximum number of objects per transaction; other differences of the same read are written by the next one.
    private static let writesMax = 1_000
    /// Maximum number of people whose records are all read because a listing misses one. Others are handled by the next
    /// run, or by a full comparison.
    private static let checkedMax = 20

    struct ListingCall: Sendable {
        let people: [BackendPerson]
        /// The watermark: the days that the run has read before.
        let cursor: String?
        /// The position of the poll.
        let position: Int64
        /// The environment's position at the request: later writes may be newer than the result.
        let requestedAt: Int64
        let followedDays: ClosedRange<Day>
        /// The days that the run has not read yet.
        let remaining: ClosedRange<Day>
        /// The part that was already read.
        var read: ListingRead?
        /// The people whose records must all be read.
        var inconclusive: Set<String> = []

        /// Makes the call.
        func result(from backend: any TimeBackend) async -> Result<ListingRead, BackendError> {
            do throws(BackendError) {
                guard var read else {
                    let listing = try await backend.listing(
                        of: people, from: remaining.lowerBound, through: remaining.upperBound)
                    guard remaining.contains(listing.from) else {
                        throw .notProcessed(reason: "a listing of days that were not requested", retryAfter: nil)
                    }
                    return .success(ListingRead(listing, through: remaining.upperBound))
                }
                for person in people where inconclusive.contains(person.email) {
                    // If they cannot be read, the records of that person are skipped.
                    read.allRecords[person.email] = try? await backend.entries(
                        of: person, from: followedDays.lowerBound, through: followedDays.upperBound)
                    read.isChecked = true
                }
                return .success(read)
            } catch {
                return .failure(error)
            }
        }
    }

    /// A part of a bulk listing.
    struct ListingRead: Sendable {
        let listing: BackendListing
        let days: ClosedRange<Day>
        /// By e-mail address: one hash per day, equal for equal records in this process.
        private let hashes: [String: [Int]]
        private let hashesOfNothing: [Int]
        /// All records of all followed days, for people with a missing record.
        var allRecords: [String: [BackendEntry]] = [:]
        /// Whether ``allRecords`` was requested.
        var isChecked = false

        /// Computes the hashes during the call, not in the worker's decision.
        init(_ listing: BackendListing, through last: Day) {
            self.listing = listing
            days = listing.from...last
            let first = listing.from
            let hashesOfNothing = (0...first.days(until: last)).map { first.adding(days: $0).hashValue }
            hashes = listing.entries.mapValues { entries in
                var hashes = hashesOfNothing
                for entry in entries {
                    let index = first.days(until: entry.day)
                    // A sum is independent of the order of the records.
                    if hashes.indices.contains(index) { hashes[index] &+= entry.hashValue }
                }
                return hashes
            }
            self.hashesOfNothing = hashesOfNothing
        }

        func hashes(of email: String) -> [Int] { hashes[email] ?? hashesOfNothing }
    }

    /// Returns whether changes of an environment are detected by bulk listings.
    func isListed(_ environment: EnvironmentID, _ connection: inout Connection) throws -> Bool {
        do {
            let capabilities = try fetcher.adapters.adapter(of: environment, on: &connection).capabilities
            return capabilities.supportsBulkListing && !capabilities.supportsChangeFeed
        } catch is MissingBackend {
            // The call reports the error.
            return false
        }
    }

    /// Writes each part with its watermark in one transaction. If a person's record is missing, all their records are
    /// read before the part is written.
    mutating func followListing(
        _ answer: CallResult?, _ poll: Poll, _ object: RealmObject, _ attemptCount: Int, _ decision: Int,
        _ environment: EnvironmentID, _ batch: inout WriteBatch, _ writes: inout PollWrites,
        _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let stored = try connection.run(PollStore.watermark(of: environment))
        guard let (cursor, position) = try stored.first?.decode(String?.self, Int64.self) else { return .finished }
        guard case .listing(let result, of: var call) = answer, call.cursor == cursor else {
            let people = try comparedPeople(in: environment, &connection)
            return list(people, since: cursor, poll, object, at: position)
        }
        switch result {
        case .success(let read):
            batch.expect(PollStore.expectWatermark(cursor, in: environment, decision: decision))
            let written = try write(read, call, decision, environment, &batch, &writes, &connection)
            let needsCheck = !read.isChecked && !written.inconclusive.isEmpty
            guard written.isComplete, !needsCheck else {
                call.read = read
                call.inconclusive = written.isComplete ? Set(written.inconclusive.prefix(Self.checkedMax)) : []
                return .call(.listing(call), startBefore: .now + .seconds(600))
            }
            report(read.listing.unreadable, environment)
            unreadable.report(read.listing.unreadableRecords, in: environment, logger)
            let next = ListingCursor(run: poll.run, day: read.days.lowerBound).description
            batch.append(PollStore.moveWatermark(to: next, in: environment, decision: decision))
            return list(call.people, since: next, poll, object, at: position)
        case .failure(let error):
            return next(after: error, attemptCount, Poll.changesPerson, environment)
        }
    }

    private func list(
        _ people: [BackendPerson], since cursor: String?, _ poll: Poll, _ object: RealmObject, at position: Int64
    ) -> Disposition<Call> {
        let days = fetcher.followedDays()
        guard !people.isEmpty, let remaining = ListingCursor.remaining(of: days, since: cursor, run: poll.run) else {
            return .finished
        }
        return .call(
            .listing(
                ListingCall(
                    people: people, cursor: cursor, position: object.position, requestedAt: position,
                    followedDays: days, remaining: remaining)), startBefore: .now + .seconds(600))
    }

    /// Returns people who were compared in full before: listings do not detect that all records of a person are new.
    private mutating func comparedPeople(
        in environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [BackendPerson] {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return []
        }
        let results = try connection.run([
            BackendPeople.initialized(users: users, in: environment), PollStore.finished(in: environment),
        ])
        let finished = try PollStore.runs(results[1])
        let emails = try results[0].decode(String.self).filter { finished[RealmContents.pollID(of: $0)] != nil }
        let people = try BackendPerson.load(emails, in: environment, on: &connection)
        return people.values.sorted { $0.email < $1.email }
    }

    /// The result of writing a part.
    private struct WriteResult {
        /// Whether all differences are written.
        var isComplete = true
        /// People with a missing record.
        var inconclusive: [String] = []
    }

    /// Writes records that differ from their observations, except those that were written since the request or are
    /// written by this batch: the next run determines which is newer.
    private mutating func write(
        _ read: ListingRead, _ call: ListingCall, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> WriteResult {
        let paths = try call.people.map { ($0.email, try RealmPath.seen($0.email)) }
        let ids = try directory.ids(of: paths.map(\.1), in: environment, create: true, on: &connection)
        let realms = Dictionary(paths.compactMap { email, path in ids[path].map { (email, $0) } }) { first, _ in first }
        if try !changeTracker.follow(environment, on: &connection) {
            comparisons.removeAll(in: environment)
            listings.removeAll(in: environment)
        }
        let differing = paths.map(\.0).filter { !isUnchanged(read, of: $0, realms[$0], environment) }
        let stored = try StoredObservations(
            differing.compactMap { realms[$0] }, on: read.days,
            and: keys(differing, realms) { read.listing.entries[$0] }, in: environment, decoder, &connection)
        let checked = differing.filter { read.allRecords[$0] != nil }
        let storedOfChecked = try StoredObservations(
            checked.compactMap { realms[$0] }, on: call.followedDays,
            and: keys(checked, realms) { read.allRecords[$0] }, in: environment, decoder, &connection)
        var written = WriteResult()
        let countBefore = writes.count
        for email in differing {
            guard let realm = realms[email] else { continue }
            guard writes.count - countBefore < Self.writesMax else {
                written.isComplete = false
                break
            }
            let isChecked = read.allRecords[email] != nil
            let observations = isChecked ? storedOfChecked : stored
            guard let changes = changes(of: email, observations.records[realm] ?? [:], read, call.followedDays) else {
                written.inconclusive.append(email)
                continue
            }
            reportAmbiguous(changes.ambiguous, of: email, environment)
            try writeObservations(
                changes, realm, observations.positions, through: call.requestedAt, decision, &batch, &writes)
            if changes.put.isEmpty, changes.gone.isEmpty, !read.listing.unreadable.contains(email) {
                listings.insert(
                    email, read.hashes(of: email), from: read.days.lowerBound, at: call.requestedAt, in: environment)
            }
        }
        return written
    }

    /// - Returns: `nil` if all records of the person must be read first.
    private func changes(
        of email: String, _ known: [UUID: SeenRecord], _ read: ListingRead, _ followedDays: ClosedRange<Day>
    ) -> PollRule.Changes? {
        if let all = read.allRecords[email] {
            return ListingRule.changes(known: known, all: all, days: followedDays, email: email)
        }
        let listed = read.listing.entries[email] ?? []
        if read.listing.unreadable.contains(email) {
            return PollRule.Changes(
                put: PollRule.updates(known: known, reported: listed, days: followedDays, email: email))
        }
        return switch ListingRule.compare(known: known, found: listed, days: read.days, email: email) {
        case .put(let put): PollRule.Changes(put: put)
        case .inconclusive: nil
        }
    }

    private func keys(
        _ emails: [String], _ realms: [String: Int32], _ entries: (String) -> [BackendEntry]?
    ) -> [ObjectKey] {
        emails.flatMap { email in
            guard let realm = realms[email] else { return [ObjectKey]() }
            return Set((entries(email) ?? []).map { RealmContents.entryID(of: $0, of: email) }).map {
                ObjectKey(realm: realm, kind: .seenRecord, id: $0)
            }
        }
    }

    /// Returns whether a person's records are the same as when they were equal to the stored observations, and the
    /// stored objects are unchanged since then.
    private func isUnchanged(
        _ read: ListingRead, of email: String, _ realm: Int32?, _ environment: EnvironmentID
    ) -> Bool {
        guard let realm, !read.listing.unreadable.contains(email),
            let position = listings.position(
                of: email, read.hashes(of: email), from: read.days.lowerBound, in: environment)
        else { return false }
        return !changeTracker.hasChanged([realm], since: position, in: environment)
    }

    private func report(_ unreadable: Set<String>, _ environment: EnvironmentID) {
        if unreadable.isEmpty { return }
        logger.warning(
            "back-end records of some people are unreadable",
            metadata: [
                "environment": "\(environment)", "people": "\(unreadable.sorted().prefix(10))",
                "count": "\(unreadable.count)",
            ])
    }
}
