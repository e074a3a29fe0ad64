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

/// The notifier's handler with a real database and a tracker in memory. A test runs a worker's steps one by one, and
/// can inject events between them.
struct NotifierWorld: ~Copyable {
    /// The step after which a worker crashes.
    enum Crash: CaseIterable {
        /// The decision is not written.
        case beforeWriting
        /// The decision is written, and the next request is not sent.
        case afterWriting
        /// The response is lost.
        case afterReading
    }

    static let people = ["ana": "ana@example.com", "bo": "bo@example.com", "eva": "eva@example.com"]
    static let server = "https://compass.example.com:8190"

    var acme: TestEnvironment
    var tracker = TrackerModel()
    /// Current time in seconds of UTC.
    var now: Int
    let ids = TrackerIDs(server: server, repository: "CCMRepo", database: "SAMPL")
    let people: [String: String]
    private(set) var reference = ReferenceReader()
    private var handler: DefectHandler
    /// Responses that are not processed yet; a crash loses them.
    private var responses: [UUID: PageResponse] = [:]
    private var runs: [UUID: Int64] = [:]

    /// - Parameter people: E-mail addresses by login name. Each person has a realm.
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
        // The tracker in memory serves all pages.
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

    /// Writes the poll of a run, as the scheduler does.
    ///
    /// - Parameter login: The person's own login; `nil`: the account.
    mutating func startPoll(_ scope: DefectPoll.Scope = .changes, as login: String? = nil) throws {
        let email = login.flatMap { people[$0] }
        let id = Scheduler.pollID(of: scope, email)
        runs[id, default: 0] += 1
        let poll = DefectPoll(run: runs[id, default: 0], scope: scope, person: email, dueAt: time)
        let json = String(decoding: try JSONEncoder().encode(poll), as: UTF8.self)
        try acme.put([(id, json)], .defectPoll, into: .polls)
    }

    /// Processes a poll without committing its writes.
    mutating func decide(
        _ scope: DefectPoll.Scope, as login: String? = nil
    ) throws -> (Disposition<PageRequest>, WriteBatch) {
        let id = Scheduler.pollID(of: scope, login.flatMap { people[$0] })
        var batch = WriteBatch(environment: acme.id)
        let item = WorkItem<PageResponse>(
            environment: acme.id, subject: EventSubject(realm: .polls, kind: .defectPoll, id: id),
            origin: responses[id].map { .result($0) } ?? .event, attemptCount: 0)
        let disposition = try #require(
            try handler.decide([item], in: acme.id, batch: &batch, on: &acme.connection).first)
        return (disposition, batch)
    }

    /// Processes several people's polls in one batch.
    mutating func stepTogether(as logins: [String]) throws {
        let ids = logins.map { Scheduler.pollID(of: .changes, people[$0]) }
        var batch = WriteBatch(environment: acme.id)
        let items = ids.map { id in
            WorkItem<PageResponse>(
                environment: acme.id, subject: EventSubject(realm: .polls, kind: .defectPoll, id: id),
                origin: responses[id].map { .result($0) } ?? .event, attemptCount: 0)
        }
        let next = try handler.decide(items, in: acme.id, batch: &batch, on: &acme.connection)
        #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
        for (id, disposition) in zip(ids, next) {
            responses[id] = nil
            if case .call(let request, _) = disposition { responses[id] = tracker.read(request, at: now) }
        }
    }

    /// Runs a worker's next step with a poll.
    ///
    /// - Returns: Whether the poll is finished.
    @discardableResult
    mutating func step(
        _ scope: DefectPoll.Scope, as login: String? = nil, _ crash: Crash? = nil
    ) throws -> Bool {
        let (disposition, batch) = try decide(scope, as: login)
        if crash == .beforeWriting { return try self.restart() }
        let outcome = try batch.commit(on: &acme.connection)
        if crash == .afterWriting { return try self.restart() }
        guard outcome.conflicts.isEmpty else { return false }
        let id = Scheduler.pollID(of: scope, login.flatMap { people[$0] })
        responses[id] = nil
        switch disposition {
        case .call(let request, _):
            responses[id] = tracker.read(request, at: now)
            if crash == .afterReading { return try self.restart() }
            return false
        case .finished: return true
        case .deferred, .reprocess, .deadLettered:
            Issue.record("\(disposition)")
            return true
        }
    }

    private mutating func restart() throws -> Bool {
        responses = [:]
        handler = try Self.handler()
        return false
    }

    /// Runs a history poll or a comparison to its end.
    mutating func complete(_ scope: DefectPoll.Scope = .changes, as login: String? = nil) throws {
        try startPoll(scope, as: login)
        while try !step(scope, as: login) {}
        if scope == .changes { updateReference(as: login) }
    }

    /// Runs a poll with a worker that crashes up to four times. Each time the poll restarts from its first page.
    mutating func complete(
        _ scope: DefectPoll.Scope = .changes, as login: String? = nil, crashing random: inout SplitMix64,
        oneIn count: Int = 4
    ) throws {
        try startPoll(scope, as: login)
        var crashCountMax = 4
        while true {
            let isCrash = crashCountMax > 0 && Int.random(in: 0..<count, using: &random) == 0
            if isCrash { crashCountMax -= 1 }
            if try step(scope, as: login, isCrash ? Crash.allCases.randomElement(using: &random) : nil) { break }
        }
        if scope == .changes { updateReference(as: login) }
    }

    private mutating func updateReference(as login: String?) {
        reference.read(tracker, people: people, now: now, as: login)
    }

    var time: Timestamp { Timestamp(millisecondsSinceEpoch: Int64(now) * 1_000) }

    // MARK: Stored data

    /// The realm and id of a notice, present or deleted.
    struct NoticeKey: Hashable {
        let path: String
        let id: UUID
    }

    /// The notices of the reference reader, by their keys.
    var expected: [NoticeKey: ReferenceReader.ExpectedNotice] {
        Dictionary(
            reference.notices.map { expected in
                let row = HistoryRow(
                    defect: TrackedDefect(record: expected.record, headline: ""), action: expected.action,
                    user: expected.user,
                    time: expected.time, seconds: 0, id: expected.id.map { "\($0)" })
                return (
                    NoticeKey(path: "/users/\(expected.email)", id: ids.notice(of: row, to: expected.email)), expected
                )
            }
        ) { first, _ in first }
    }

    /// Returns all notices; a tombstone's fields are `nil`.
    mutating func notices() throws -> [NoticeKey: Notice?] {
        let decoder = JSONDecoder()
        var notices: [NoticeKey: Notice?] = [:]
        for (path, id, fields) in try acme.connection.run(
            """
            SELECT r.path, o.id, o.fields FROM store.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.kind = \(Kind.notice)
            """
        ).decode(String.self, UUID.self, CanonicalJSON?.self) {
            let notice = try fields.map { try decoder.decode(Notice.self, from: Data($0.bytes)) }
            notices[NoticeKey(path: path, id: id)] = .some(notice)
        }
        return notices
    }

    /// Checks that exactly the reference reader's notices are stored.
    mutating func expectNotices(_ location: SourceLocation = #_sourceLocation) throws {
        let (stored, expected) = (try notices(), expected)
        let missing = Set(expected.keys).subtracting(stored.keys)
        let unexpected = Set(stored.keys).subtracting(expected.keys)
        #expect(missing.isEmpty && unexpected.isEmpty, "of \(expected.count)", sourceLocation: location)
        for (key, notice) in stored {
            guard let notice, let reference = expected[key] else { continue }
            #expect(
                notice.text == reference.text && notice.code.rawValue == reference.code
                    && notice.about == ids.defect(reference.record),
                sourceLocation: location)
        }
    }

    /// Returns the number of writes of notices, including people's own.
    mutating func noticeWriteCount() throws -> Int64 {
        try acme.connection.run("SELECT count(*) FROM store.change WHERE kind = \(Kind.notice)")[0]
            .decode(Int64.self)
    }

    /// The mirrors of each realm, derived from the tracker.
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

    /// Writes to a notice as its person does through the gateway.
    mutating func write(_ notice: NoticeKey, _ fields: String?) throws {
        let realm = try acme.realm(try RealmPath(validating: notice.path))
        var batch = WriteBatch(environment: acme.id)
        let key = ObjectKey(realm: realm, kind: .notice, id: notice.id)
        if let fields {
            batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true)
        } else {
            batch.delete(key, decision: 0, isEdit: true)
        }
        _ = try batch.commit(on: &acme.connection)
    }
}
