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

/// Everybody's records, where a back end lists them together, read some days at a time.
extension PollHandler {
    /// Objects written at a time; what else differs is written next, of the same reading.
    private static let writesMax = 1_000
    /// People of whom all records are read, to see what has become of one that a part of a listing misses. Those of
    /// more of them are read by the next run, or compared in full.
    private static let checkedMax = 20

    struct ListingCall: Sendable {
        let people: [BackendPerson]
        /// The watermark: what the run has read before.
        let cursor: String?
        /// That of the poll it is made for.
        let position: Int64
        /// The environment's position when it was asked: what was written later may be newer than the answer.
        let askedAt: Int64
        let followedDays: ClosedRange<Day>
        /// Those that the run has not read yet.
        let rest: ClosedRange<Day>
        /// What is read already.
        var read: ListingRead?
        /// The people of whom all records are to be read.
        var doubtful: Set<String> = []

        /// Makes it.
        func result(from backend: any TimeBackend) async -> Result<ListingRead, BackendError> {
            do throws(BackendError) {
                guard var read else {
                    let listing = try await backend.listing(
                        of: people, from: rest.lowerBound, through: rest.upperBound)
                    guard rest.contains(listing.from) else {
                        throw .notProcessed(reason: "a listing of other days than were asked for", retryAfter: nil)
                    }
                    return .success(ListingRead(listing, through: rest.upperBound))
                }
                for person in people where doubtful.contains(person.email) {
                    // Of whom they cannot be read, nothing is concluded.
                    read.whole[person.email] = try? await backend.entries(
                        of: person, from: followedDays.lowerBound, through: followedDays.upperBound)
                    read.isChecked = true
                }
                return .success(read)
            } catch {
                return .failure(error)
            }
        }
    }

    /// A part of a listing, as it was read.
    struct ListingRead: Sendable {
        let listing: BackendListing
        let days: ClosedRange<Day>
        /// By e-mail address: a hash for each of the days, the same in this process for the same records.
        private let hashes: [String: [Int]]
        private let hashesOfNothing: [Int]
        /// All records of all followed days, of people of whom a record is missing.
        var whole: [String: [BackendEntry]] = [:]
        /// Whether such people were asked for.
        var isChecked = false

        /// Takes the hashes here, where the call is made, and not where the worker decides.
        init(_ listing: BackendListing, through last: Day) {
            self.listing = listing
            days = listing.from...last
            let first = listing.from
            let hashesOfNothing = (0...first.days(until: last)).map { first.adding(days: $0).hashValue }
            hashes = listing.entries.mapValues { entries in
                var hashes = hashesOfNothing
                for entry in entries {
                    let index = first.days(until: entry.day)
                    // In whatever order they come.
                    if hashes.indices.contains(index) { hashes[index] &+= entry.hashValue }
                }
                return hashes
            }
            self.hashesOfNothing = hashesOfNothing
        }

        func hashes(of email: String) -> [Int] { hashes[email] ?? hashesOfNothing }
    }

    /// Whether everybody's records are listed in an environment, and changes are not told.
    func isListed(_ environment: EnvironmentID, _ connection: inout Connection) throws -> Bool {
        do {
            let capabilities = try fetcher.adapters.adapter(of: environment, on: &connection).capabilities
            return capabilities.listsEverybody && !capabilities.tellsChanges
        } catch is MissingBackend {
            // What is wrong with it is said where it would be called.
            return false
        }
    }

    /// Each part is written with the watermark that it leads to, as parts of changes are. What it misses of somebody is
    /// looked into before anything is concluded from it.
    mutating func followListing(
        _ answer: Answer?, _ poll: Poll, _ object: RealmObject, _ attemptCount: Int, _ decision: Int,
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
            let isInDoubt = !read.isChecked && !written.doubtful.isEmpty
            guard written.isAll, !isInDoubt else {
                call.read = read
                call.doubtful = written.isAll ? Set(written.doubtful.prefix(Self.checkedMax)) : []
                return .call(.listing(call), startBefore: .now + .seconds(600))
            }
            report(read.listing.unreadable, environment)
            unreadable.report(read.listing.unreadableRecords, in: environment, logger)
            let next = ListingCursor(run: poll.run, day: read.days.lowerBound).description
            batch.also(PollStore.moveWatermark(to: next, in: environment, decision: decision))
            return list(call.people, since: next, poll, object, at: position)
        case .failure(let error):
            return next(after: error, attemptCount, Poll.ofChanges, environment)
        }
    }

    private func list(
        _ people: [BackendPerson], since cursor: String?, _ poll: Poll, _ object: RealmObject, at position: Int64
    ) -> Disposition<Call> {
        let days = fetcher.followedDays()
        guard !people.isEmpty, let rest = ListingCursor.rest(of: days, since: cursor, run: poll.run) else {
            return .finished
        }
        return .call(
            .listing(
                ListingCall(
                    people: people, cursor: cursor, position: object.position, askedAt: position, followedDays: days,
                    rest: rest)), startBefore: .now + .seconds(600))
    }

    /// People who were compared in full before: that somebody's records are all new is not found out by lists.
    private mutating func comparedPeople(
        in environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [BackendPerson] {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return []
        }
        let answers = try connection.run([
            BackendPeople.initialized(users: users, in: environment), PollStore.finished(in: environment),
        ])
        let finished = try PollStore.runs(answers[1])
        let emails = try answers[0].decode(String.self).filter { finished[RealmContents.pollID(of: $0)] != nil }
        let people = try BackendPerson.load(emails, in: environment, on: &connection)
        return people.values.sorted { $0.email < $1.email }
    }

    /// What became of a part.
    private struct Written {
        /// Whether nothing is left to be written of it.
        var isAll = true
        /// People of whom a record is not where it was seen.
        var doubtful: [String] = []
    }

    /// Writes the records that differ from what was seen of them, but for those that were written since the question
    /// was asked, or are about to be: the next run sees which is newer.
    private mutating func write(
        _ read: ListingRead, _ call: ListingCall, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Written {
        let paths = try call.people.map { ($0.email, try RealmPath.seen($0.email)) }
        let ids = try directory.ids(of: paths.map(\.1), in: environment, create: true, on: &connection)
        let realms = Dictionary(paths.compactMap { email, path in ids[path].map { (email, $0) } }) { first, _ in first }
        if try !followed.follow(environment, on: &connection) {
            compared.forget(environment)
            listed.forget(environment)
        }
        let differing = paths.map(\.0).filter { !isUnchanged(read, of: $0, realms[$0], environment) }
        let stored = try StoredObservations(
            differing.compactMap { realms[$0] }, on: read.days,
            and: keys(differing, realms) { read.listing.entries[$0] }, in: environment, decoder, &connection)
        let checked = differing.filter { read.whole[$0] != nil }
        let storedWhole = try StoredObservations(
            checked.compactMap { realms[$0] }, on: call.followedDays, and: keys(checked, realms) { read.whole[$0] },
            in: environment, decoder, &connection)
        var written = Written()
        let countBefore = writes.count
        for email in differing {
            guard let realm = realms[email] else { continue }
            guard writes.count - countBefore < Self.writesMax else {
                written.isAll = false
                break
            }
            let isChecked = read.whole[email] != nil
            let seen = isChecked ? storedWhole : stored
            guard let changes = changes(of: email, seen.records[realm] ?? [:], read, call.followedDays) else {
                written.doubtful.append(email)
                continue
            }
            reportAmbiguous(changes.ambiguous, of: email, environment)
            try write(changes, realm, seen.positions, askedAt: call.askedAt, decision, &batch, &writes)
            if changes.put.isEmpty, changes.gone.isEmpty, !read.listing.unreadable.contains(email) {
                listed.remember(
                    email, read.hashes(of: email), from: read.days.lowerBound, at: call.askedAt, in: environment)
            }
        }
        return written
    }

    /// - Returns: `nil` when all records of the person are to be read first.
    private func changes(
        of email: String, _ known: [UUID: SeenRecord], _ read: ListingRead, _ followedDays: ClosedRange<Day>
    ) -> PollRule.Changes? {
        if let all = read.whole[email] {
            return ListingRule.changes(known: known, all: all, days: followedDays, email: email)
        }
        let found = read.listing.entries[email] ?? []
        if read.listing.unreadable.contains(email) {
            return PollRule.Changes(
                put: PollRule.news(known: known, told: found, days: followedDays, email: email))
        }
        return switch ListingRule.compare(known: known, found: found, days: read.days, email: email) {
        case .put(let put): PollRule.Changes(put: put)
        case .doubtful: nil
        }
    }

    private func write(
        _ changes: PollRule.Changes, _ realm: Int32, _ positions: [ObjectKey: Int64], askedAt position: Int64,
        _ decision: Int, _ batch: inout WriteBatch, _ writes: inout PollWrites
    ) throws {
        for id in changes.gone.union(changes.put.keys) {
            let key = ObjectKey(realm: realm, kind: .seenRecord, id: id)
            let storedPosition = positions[key] ?? 0
            guard storedPosition <= position, !writes.has(key) else { continue }
            batch.expect(key, at: storedPosition, decision: decision)
            if let record = changes.put[id] {
                try writes.put(realm, .seenRecord, id, record, decision)
            } else {
                writes.delete(realm, .seenRecord, id, decision)
            }
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

    /// Whether a person's records are as they were when they were found to be as they are stored, and nobody has
    /// changed what is stored since.
    private func isUnchanged(
        _ read: ListingRead, of email: String, _ realm: Int32?, _ environment: EnvironmentID
    ) -> Bool {
        guard let realm, !read.listing.unreadable.contains(email),
            let position = listed.position(
                of: email, read.hashes(of: email), from: read.days.lowerBound, in: environment)
        else { return false }
        return !followed.hasChanged([realm], since: position, in: environment)
    }

    private func report(_ unreadable: Set<String>, _ environment: EnvironmentID) {
        if unreadable.isEmpty { return }
        logger.warning(
            "the back end's records of some people cannot be read; nothing is concluded from what is missing",
            metadata: [
                "environment": "\(environment)", "people": "\(unreadable.sorted().prefix(10))",
                "count": "\(unreadable.count)",
            ])
    }
}
