import BackendConnections
import Essentials
import FoundationEssentials
import HTTPClient
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker

/// The notifier's handler with a real database and a tracker in memory. A worker's steps are taken one by one, so that
/// anything can happen between them.
struct NotifierWorld: ~Copyable {
    /// Where a worker ends.
    enum Crash: CaseIterable {
        /// What was decided is not written.
        case beforeWriting
        /// It is written, and what follows is not asked for.
        case afterWriting
        /// The answer to what was asked for is lost.
        case afterReading
    }

    static let people = ["ana": "ana@example.com", "bo": "bo@example.com", "eva": "eva@example.com"]
    static let server = "https://compass.example.com:8190"

    var acme: TestEnvironment
    var tracker = TrackerModel()
    /// Seconds of UTC.
    var now: Int
    let ids = TrackerIDs(server: server, repository: "CCMRepo", database: "SAMPL")
    let people: [String: String]
    private(set) var naive = NaiveReader()
    private var handler: DefectHandler
    /// Answers that are not decided yet: what a crash loses.
    private var answers: [UUID: ReadAnswer] = [:]
    private var runs: [UUID: Int64] = [:]

    /// - Parameter people: E-mail addresses by login name; each has a realm.
    init(people: [String: String] = people, now: Int = 1_780_000_000) throws {
        var acme = try TestEnvironment()
        try Self.addTracker(to: &acme)
        try acme.connection.run(
            DefectLogins.replace(
                Dictionary(uniqueKeysWithValues: people.map { ($0.value, $0.key) }), in: acme.id))
        var directory = RealmDirectory()
        let paths = try people.values.map { try RealmPath.user($0) }
        _ = try directory.ids(of: paths, in: acme.id, create: true, on: &acme.connection)
        let handler = try Self.handler()
        (self.people, self.now) = (people, now)
        self.handler = handler
        self.acme = acme
    }

    static func addTracker(to acme: inout TestEnvironment, hasAccount: Bool = true) throws {
        var tracker = DefectTracker(environment: acme.id)
        (tracker.serverURL, tracker.repository, tracker.database) = (server, "CCMRepo", "SAMPL")
        if hasAccount { tracker.account = .password(user: "fieldpost", sealed: Bytea([1])) }
        try acme.connection.run(tracker.save())
    }

    private static func handler() throws -> DefectHandler {
        // Pages are read in memory.
        let client = Client()
        client.shutDown()
        let logger = Logger(label: "notifier")
        return DefectHandler(
            TrackerDirectory(
                DefectTrackerRegistry(
                    client: client, secrets: try SecretBox([CompassWorld.secretKey]), callMax: .seconds(1)),
                logger: logger), logger: logger)
    }

    // MARK: The notifier

    /// The scheduler writes the poll of a run.
    ///
    /// - Parameter login: Of the person's own; `nil`: the account's.
    mutating func begin(_ scope: DefectPoll.Scope = .changes, as login: String? = nil) throws {
        let email = login.flatMap { people[$0] }
        let id = Scheduler.pollID(of: scope, email)
        runs[id, default: 0] += 1
        let poll = DefectPoll(run: runs[id, default: 0], scope: scope, person: email, dueAt: time)
        let json = String(decoding: try JSONEncoder().encode(poll), as: UTF8.self)
        try acme.put([(id, json)], .defectPoll, into: .polls)
    }

    /// A decision that is not written yet.
    mutating func decide(
        _ scope: DefectPoll.Scope, as login: String? = nil
    ) throws -> (Disposition<Reading>, WriteBatch) {
        let id = Scheduler.pollID(of: scope, login.flatMap { people[$0] })
        var batch = WriteBatch(environment: acme.id)
        let item = WorkItem<ReadAnswer>(
            environment: acme.id, subject: EventSubject(realm: .polls, kind: .defectPoll, id: id),
            origin: answers[id].map { .answer($0) } ?? .event, attemptCount: 0)
        let disposition = try #require(
            try handler.decide([item], in: acme.id, batch: &batch, on: &acme.connection).first)
        return (disposition, batch)
    }

    /// What several people's rounds have read, decided and written together.
    mutating func stepTogether(as logins: [String]) throws {
        let ids = logins.map { Scheduler.pollID(of: .changes, people[$0]) }
        var batch = WriteBatch(environment: acme.id)
        let items = ids.map { id in
            WorkItem<ReadAnswer>(
                environment: acme.id, subject: EventSubject(realm: .polls, kind: .defectPoll, id: id),
                origin: answers[id].map { .answer($0) } ?? .event, attemptCount: 0)
        }
        let next = try handler.decide(items, in: acme.id, batch: &batch, on: &acme.connection)
        #expect(try batch.commit(on: &acme.connection).missed.isEmpty)
        for (id, disposition) in zip(ids, next) {
            answers[id] = nil
            if case .call(let reading, _) = disposition { answers[id] = tracker.read(reading, at: now) }
        }
    }

    /// A worker's next step with a poll.
    ///
    /// - Returns: Whether the poll is done.
    @discardableResult
    mutating func step(
        _ scope: DefectPoll.Scope, as login: String? = nil, _ crash: Crash? = nil
    ) throws -> Bool {
        let (disposition, batch) = try decide(scope, as: login)
        if crash == .beforeWriting { return try self.crash() }
        let outcome = try batch.commit(on: &acme.connection)
        if crash == .afterWriting { return try self.crash() }
        guard outcome.missed.isEmpty else { return false }
        let id = Scheduler.pollID(of: scope, login.flatMap { people[$0] })
        answers[id] = nil
        switch disposition {
        case .call(let reading, _):
            answers[id] = tracker.read(reading, at: now)
            if crash == .afterReading { return try self.crash() }
            return false
        case .finished: return true
        case .park, .again, .dead:
            Issue.record("\(disposition)")
            return true
        }
    }

    private mutating func crash() throws -> Bool {
        answers = [:]
        handler = try Self.handler()
        return false
    }

    /// A round, or a comparison, from its beginning to its end.
    mutating func complete(_ scope: DefectPoll.Scope = .changes, as login: String? = nil) throws {
        try begin(scope, as: login)
        while try !step(scope, as: login) {}
        if scope == .changes { look(as: login) }
    }

    /// The same with a worker that ends now and then: a few times, since each time the reading begins anew.
    mutating func complete(
        _ scope: DefectPoll.Scope = .changes, as login: String? = nil, crashing random: inout SplitMix64,
        oneIn count: Int = 4
    ) throws {
        try begin(scope, as: login)
        var crashCountMax = 4
        while true {
            let isCrash = crashCountMax > 0 && Int.random(in: 0..<count, using: &random) == 0
            if isCrash { crashCountMax -= 1 }
            if try step(scope, as: login, isCrash ? Crash.allCases.randomElement(using: &random) : nil) { break }
        }
        if scope == .changes { look(as: login) }
    }

    private mutating func look(as login: String?) { naive.look(at: tracker, people: people, now: now, as: login) }

    var time: Timestamp { Timestamp(millisecondsSinceEpoch: Int64(now) * 1_000) }

    // MARK: What is stored

    /// A notice that is there or was.
    struct Found: Hashable {
        let path: String
        let id: UUID
    }

    /// What the plain reader has told, as it is to be stored.
    var expected: [Found: NaiveReader.Told] {
        Dictionary(
            naive.told.map { told in
                let row = HistoryRow(
                    defect: TrackedDefect(record: told.record, headline: ""), action: told.action, user: told.user,
                    time: told.time, seconds: 0, id: told.id.map { "\($0)" })
                return (Found(path: "/users/\(told.email)", id: ids.notice(of: row, to: told.email)), told)
            }
        ) { first, _ in first }
    }

    /// Every notice that is there, or was and is a tombstone; its fields are `nil` then.
    mutating func notices() throws -> [Found: Notice?] {
        let decoder = JSONDecoder()
        var found: [Found: Notice?] = [:]
        for (path, id, fields) in try acme.connection.run(
            """
            SELECT r.path, o.id, o.fields FROM store.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.kind = \(Kind.notice)
            """
        ).decode(String.self, UUID.self, CanonicalJSON?.self) {
            let notice = try fields.map { try decoder.decode(Notice.self, from: Data($0.bytes)) }
            found[Found(path: path, id: id)] = .some(notice)
        }
        return found
    }

    /// Exactly what the plain reader has told is there, and was written once.
    mutating func expectNotices(_ place: SourceLocation = #_sourceLocation) throws {
        let (found, expected) = (try notices(), expected)
        let missing = Set(expected.keys).subtracting(found.keys)
        let unexpected = Set(found.keys).subtracting(expected.keys)
        #expect(missing.isEmpty && unexpected.isEmpty, "of \(expected.count)", sourceLocation: place)
        for (key, notice) in found {
            guard let notice, let told = expected[key] else { continue }
            #expect(
                notice.text == told.text && notice.code.rawValue == told.code
                    && notice.about == ids.defect(told.record),
                sourceLocation: place)
        }
    }

    /// How often notices were written; a person's own writes count as well.
    mutating func noticeWriteCount() throws -> Int64 {
        try acme.connection.run("SELECT count(*) FROM store.change WHERE kind = \(Kind.notice)")[0]
            .decode(Int64.self)
    }

    /// The mirrors of each realm, as the tracker has them.
    var expectedMirrors: [String: Set<String>] {
        var mirrors: [String: Set<String>] = [:]
        for defect in tracker.records.values {
            for login in Set([defect.owner, defect.submitter].compactMap(\.self)) {
                guard let email = people[login] else { continue }
                mirrors["/users/\(email)", default: []].insert(
                    "\(defect.record) \(defect.headline) \(defect.state ?? "-") \(defect.owner == login) "
                        + "\(defect.submitter == login)")
            }
        }
        return mirrors
    }

    mutating func mirrors() throws -> [String: Set<String>] {
        let decoder = JSONDecoder()
        var mirrors: [String: Set<String>] = [:]
        for (path, fields) in try acme.connection.run(
            """
            SELECT r.path, o.fields FROM store.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.kind = \(Kind.defect) AND NOT o.deleted
            """
        ).decode(String.self, CanonicalJSON.self) {
            let defect = try decoder.decode(Defect.self, from: Data(fields.bytes))
            mirrors[path, default: []].insert(
                "\(defect.record) \(defect.headline) \(defect.state ?? "-") \(defect.isAssignedToMe) "
                    + "\(defect.isReportedByMe)")
        }
        return mirrors
    }

    /// The environment's position.
    mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id)")[0].decode(Int64.self)
    }

    mutating func watermark() throws -> String? {
        try acme.connection.run("SELECT action_timestamp FROM defect.watermark").first?.decode(String.self)
    }

    /// A person writes to a notice of theirs, as the gateway does.
    mutating func write(_ found: Found, _ fields: String?) throws {
        let realm = try acme.realm(try RealmPath(validating: found.path))
        var batch = WriteBatch(environment: acme.id)
        let key = ObjectKey(realm: realm, kind: .notice, id: found.id)
        if let fields {
            batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true)
        } else {
            batch.delete(key, decision: 0, isEdit: true)
        }
        _ = try batch.commit(on: &acme.connection)
    }
}
