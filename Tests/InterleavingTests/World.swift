import BackendConnections
import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import BackendPoller
@testable import EntrySubmitter

/// An environment with its people's phones, the real handlers of submitter and poller on a real database, and a real
/// emulator of the back end with people who work in it. The order of events is random.
struct World<Office: BackOffice>: ~Copyable {
    static var peopleCount: Int { 20 }
    private static var rule: SubmissionRule {
        SubmissionRule(
            lease: .seconds(70_000), settleMin: .seconds(30_000), retryMin: .seconds(1_000), retryMax: .seconds(16_000))
    }
    /// A call is sent before its lease ends, and a late one is executed before an unknown outcome has settled.
    private static var callTicksMax: Int { 69 }
    private static var lateTicksMax: Int { 28 }

    let environment: EnvironmentID
    private var connection: Connection
    private let office: Office
    private var phones: Phones
    private var submitter: RandomizedGroup<EntryHandler>
    private var poller: RandomizedGroup<PollHandler>
    private let entryLog: EntryTimeline
    private var random: SplitMix64
    private let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
    private let people: [BackendPerson]
    /// The published position of the change log.
    private var published: Int64 = 0
    private var run: Int64 = 0
    /// Entries of records created elsewhere that the office deleted or replaced.
    private var gone: Set<UUID> = []

    init(_ office: Office, seed: UInt64) async throws {
        var acme = try TestEnvironment()
        let (id, entryLog) = (acme.id, EntryTimeline())
        let secrets = try SecretBox([Data((0..<32).map { UInt8($0) }).base64EncodedString()])
        let password = Bytea(try secrets.seal(Office.password, at: SecretContext.backendPassword(id)))
        try acme.setBackend(.init(kind: Office.kind, url: office.url, password: password))
        let people = (0..<Self.peopleCount).map {
            BackendPerson(email: "person\($0)@example.com", reference: Office.reference($0))
        }
        let adapters = BackendRegistry(client: office.client, secrets: secrets, callMax: patienceMax)
        let fetcher = RealmFetcher(adapters, entryDays: 30)
        let backend = try adapters.adapter(of: id, on: &acme.connection)
        var phones = try Phones(acme.conninfo, in: id, today: today, references: Office.references, entryLog)
        for person in people {
            try acme.addPerson(person.email, reference: person.reference)
            phones.add(realm: try acme.realm(.user(person.email)), try await backend.reportingData(of: person))
        }
        let connection = try Connection(acme.conninfo)
        let submitting = (0..<2).map { _ in EntryHandler(rule: Self.rule, adapters: adapters) }
        let quiet = Logger(label: "poller") { _ in SwiftLogNoOpLogHandler() }
        let polling = (0..<2).map { _ in PollHandler(fetcher, logger: quiet) }
        self.office = office
        self.people = people
        self.entryLog = entryLog
        environment = id
        random = SplitMix64(seed: seed)
        submitter = RandomizedGroup(
            submitting, named: "submitter", in: id, callTicksMax: Self.callTicksMax, entryLog)
        poller = RandomizedGroup(polling, named: "poller", in: id, callTicksMax: 1_000_000, entryLog)
        self.connection = connection
        self.phones = phones
    }

    /// Fills the realms.
    mutating func begin() async throws {
        try poll(people.indices)
        try await drain()
        try letCataloguesFollow()
    }

    private mutating func letCataloguesFollow() throws {
        var keeper = CatalogueReconciler(logger: Logger(label: "keeper") { _ in SwiftLogNoOpLogHandler() })
        guard
            try keeper.settle(
                environment, since: Timestamp(millisecondsSinceEpoch: 0), on: &connection)
        else { throw Wrong("catalogues do not follow", "") }
    }

    // MARK: One step

    /// All people act, and part of the pending work progresses.
    mutating func step() async throws {
        for _ in 0..<60 {
            let index = Int.random(in: people.indices, using: &random)
            if random.happens(50) { try phones.sync(index) }
            try phones.act(index, &random)
        }
        try await workInOffice(25)
        try publish()
        try poll((0..<3).map { _ in Int.random(in: people.indices, using: &random) })
        for _ in 0..<3 {
            try await submit(percent: 60, faults: Array(repeating: .none, count: 14) + Fault.allCases)
            try await read(percent: 60)
            try publish()
        }
        switch Int.random(in: 0..<10, using: &random) {
        case 0: submitter.crash()
        case 1: poller.crash()
        case 2, 3: for _ in 0..<10 { submitter.share(&random) }
        case 4, 5: for _ in 0..<20 { submitter.repeatEvent(&random) }
        default: break
        }
        try await pass(Int.random(in: 0...25, using: &random))
    }

    var madeCount: Int { phones.madeCount }

    private mutating func workInOffice(_ count: Int) async throws {
        let records = try await office.records()
        try expectOneRecordPerEntry(records)
        let numbers = Dictionary(uniqueKeysWithValues: people.indices.map { (Office.name($0), $0) })
        for _ in 0..<count {
            if random.happens(4) {
                let person = people[Int.random(in: people.indices, using: &random)]
                try await office.create(for: person, on: today.adding(days: -2), &random)
                continue
            }
            guard let record = records.randomElement(using: &random), let number = numbers[record.person] else {
                return
            }
            let act = try await office.act(on: record, of: people[number], &random)
            if let entry = record.marker.flatMap(EntryMarker.entry) {
                entryLog.record(entry) { "office: \(act.what)" }
            } else if act.isGone {
                // The entry was created from the record and has no edits of its person: it is removed with the record.
                gone.insert(record.entry(of: people[number].email))
            }
        }
    }

    private func expectOneRecordPerEntry(_ records: [OfficeRecord]) throws {
        for (marker, found) in Dictionary(grouping: records.filter { $0.marker != nil }, by: \.marker)
        where found.count > 1 {
            let entry = marker.flatMap { $0 }.flatMap(EntryMarker.entry)
            throw Wrong("records \(found.map(\.id)) are of one entry", entry.map(entryLog.text) ?? "")
        }
    }

    /// Publishes changes to the workers.
    @discardableResult
    private mutating func publish() throws -> Int {
        var directory = RealmDirectory()
        var count = 0
        while true {
            let rows = try connection.run(
                Feed.changes(
                    in: environment, after: published, kinds: [.timeEntry, .seenRecord, .poll], countMax: 1_000))
            var realms: Set<Int32> = []
            for row in rows { realms.insert(try row.value(1)) }
            let paths = try directory.realms(of: realms, in: environment, on: &connection).mapValues(\.path)
            var changes: [(subject: EventSubject, place: EventLocation)] = []
            for row in rows {
                published = try row.value(0)
                guard try row.value(6, as: Bool.self), let kind = Kind(number: try row.value(2)),
                    let path = paths[try row.value(1)]
                else { continue }
                let place = EventLocation(position: published, editPosition: try row.value(4))
                changes.append((EventSubject(realm: path, kind: kind, id: try row.value(3)), place))
            }
            // In an order that is reproducible by the seed.
            for (subject, place) in changes.sorted(by: { $0.subject.description < $1.subject.description }) {
                if subject.kind == .poll {
                    poller.receive(of: subject, at: place)
                } else {
                    submitter.receive(of: subject, at: place)
                }
                if subject.kind != .poll { count += 1 }
            }
            if rows.count < 1_000 { return count }
        }
    }

    /// Starts a new run of some people's polls.
    private mutating func poll(_ indices: some Sequence<Int>) throws {
        run += 1
        var batch = WriteBatch(environment: environment)
        var directory = RealmDirectory()
        guard let realm = try directory.id(of: .polls, in: environment, create: true, on: &connection) else { return }
        for index in Set(indices).sorted() {
            let poll = Poll(
                run: run, person: people[index].email, dueAt: Timestamp(millisecondsSinceEpoch: run * 1_000))
            let key = ObjectKey(realm: realm, kind: .poll, id: RealmContents.pollID(of: people[index].email))
            batch.put(key, try CanonicalJSON(encoding: poll), decision: 0)
        }
        _ = try batch.commit(on: &connection)
        try publish()
    }

    private mutating func submit(percent: Int, faults: [Fault]) async throws {
        while let prepared = try submitter.decide(&random, on: &connection) {
            // An edit between load and commit.
            if percent < 100, random.happens(40) {
                for _ in 0..<8 { try phones.act(Int.random(in: people.indices, using: &random), &random) }
            }
            if percent < 100, random.happens(4) { return submitter.crash() }
            try submitter.commit(prepared, on: &connection)
        }
        let make = try submitter.caller(on: &connection)
        await submitter.fly(&random, percent: percent, faults: faults, lateTicksMax: Self.lateTicksMax) {
            await Self.answer($0, $1, make)
        }
    }

    /// The result of a call, as an adapter returns it.
    private static func answer(
        _ call: EntryHandler.Call, _ fault: Fault, _ make: RandomizedGroup<EntryHandler>.Make
    ) async -> EntryHandler.CallResult {
        let found: SubmissionResult
        switch fault {
        case .none: return await make(call)
        case .lostResponse:
            _ = await make(call)
            found = .unknown(reason: "the answer was lost", recordID: nil)
        case .lostCall, .late: found = .unknown(reason: "the answer was lost", recordID: nil)
        case .unavailable: found = .notProcessed(reason: "away", retryAfter: nil)
        case .refused: found = .refused(["The office rejects it"])
        }
        return call.answer(found)
    }

    private mutating func read(percent: Int) async throws {
        while let prepared = try poller.decide(&random, on: &connection) {
            try poller.commit(prepared, on: &connection)
        }
        let make = try poller.caller(on: &connection)
        await poller.fly(&random, percent: percent, faults: [.none], lateTicksMax: 0) { call, _ in await make(call) }
    }

    /// Advances leases and waits by this time.
    private mutating func pass(_ ticks: Int) async throws {
        let make = try submitter.caller(on: &connection)
        try await submitter.pass(ticks, on: &connection) { await Self.answer($0, $1, make) }
        let polling = try poller.caller(on: &connection)
        try await poller.pass(ticks, on: &connection) { call, _ in await polling(call) }
        let seconds = Double(ticks * RandomizedGroup<EntryHandler>.tickSeconds)
        try connection.run(
            """
            UPDATE submission.ledger SET lease_until = lease_until - make_interval(secs => \(seconds))
            WHERE environment_id = \(environment.rawValue)
            """)
    }

    // MARK: End

    /// Stops all actions and completes work in flight, until polls find no changes.
    mutating func settle() async throws {
        for _ in 0..<30 {
            try await drain()
            try poll(people.indices)
            let before = try position()
            try await drain()
            guard try position() == before else { continue }
            for index in people.indices { try phones.sync(index) }
            return
        }
        let newest = try position()
        let restless = try connection.run(
            "SELECT id FROM realm.object WHERE environment_id = \(environment.rawValue) AND position = \(newest)")
        let entry: UUID = try restless[0].value(0)
        throw Wrong("polls repeatedly find changes of \(entry.text)", entryLog.text(of: entry))
    }

    private mutating func drain() async throws {
        for _ in 0..<2_000 {
            try publish()
            try await submit(percent: 100, faults: [.none])
            try await read(percent: 100)
            guard try publish() == 0, submitter.isIdle, poller.isIdle else { continue }
            let next = [try submitter.ticksToNext(on: &connection), try poller.ticksToNext(on: &connection)]
            guard let ticks = next.compactMap(\.self).min() else { return }
            try await pass(ticks)
        }
        let busy = submitter.busy + poller.busy
        throw Wrong("\(busy.count) keys stay in flight", busy.first.map { entryLog.text(of: $0.id) } ?? "")
    }

    /// The state of everything except polls.
    private mutating func position() throws -> Int64 {
        try connection.run(
            """
            SELECT coalesce(max(position), 0) FROM realm.object
            WHERE environment_id = \(environment.rawValue) AND kind <> 'Poll'
            """)[0].value(0)
    }

    /// Records with an entry.
    mutating func statuses() throws -> Set<EntryStatus> {
        var statuses: Set<EntryStatus> = []
        for index in people.indices {
            for (key, object) in phones.copy(index) where key.kind == .timeEntry {
                if let entry = try object.decoded(as: TimeEntry.self, by: JSONDecoder()) {
                    statuses.insert(entry.status)
                }
            }
        }
        return statuses
    }

    /// All inconsistencies, one per line.
    mutating func differences() async throws -> [String] {
        var problems = (submitter.dead.map { "\($0)" } + poller.dead.map { "\($0)" }).map { "dead: \($0)" }
        let records = try await office.records()
        var directory = RealmDirectory()
        for index in people.indices {
            guard
                let realm = try directory.id(
                    of: .user(people[index].email), in: environment, create: false, on: &connection)
            else { continue }
            let rows = try connection.run(
                RealmObject.load(kinds: Kind.allCases, realm: realm, in: environment))
            let objects = try RealmObject.byKey(rows)
            if phones.copy(index) != objects { problems.append("\(people[index].email)'s phone has another realm") }
            var fates = phones.fates(index)
            fates.deleted.formUnion(gone)
            let comparison = try Comparison(
                objects, records.filter { $0.person == Office.name(index) }, fates, data: phones.data(index))
            problems += comparison.problems.map { "\($0.text)\n    \(entryLog.text(of: $0.entry))" }
        }
        return problems
    }
}

struct Wrong: Error, CustomStringConvertible {
    let description: String
    init(_ what: String, _ story: String) { description = "\(what)\n    \(story)" }
}
