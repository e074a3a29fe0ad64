import BackendConnections
import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import KeyedWorker
@testable import Sandbox

/// A stand-in for Compass that a test runs.
struct StandIn: RunningSandbox {
    let client: Client
    let url: String
    let system: CompassSystem

    static let organisation = CompassOrganisation(
        users: [
            CompassUser(name: "ana", password: "secret-of-ana", tokens: ["dG9rZW4tb2YtYW5h"]),
            CompassUser(name: "bo", password: "secret-of-bo"),
        ], projects: ["Harbour": ["Cranes", "Piers"], "Overhead": ["Meetings"]])

    /// The records of a headline.
    func records(_ headline: String) -> [CompassRecord] {
        system.withState { state in
            state.records.compactMap(\.self).filter { !$0.isDeleted && $0.fields["Headline"] == headline }
        }
    }

    func record(_ id: String) -> CompassRecord? {
        system.withState { state in CompassRecord.number(ofID: id).flatMap { state.record($0) } }
    }

    /// How often a record was saved.
    func saveCount(_ id: String) -> Int {
        system.withState { state in CompassRecord.number(ofID: id).map { state.history[$0 - 1].count } ?? 0 }
    }

    /// The edit sessions that are open, as user and record; those of new records by themselves.
    var sessions: (known: [String], new: Int) {
        system.withState { state in
            let all = state.sessions.all
            return (all.filter { !$0.isNew }.map { "\($0.user) \($0.number)" }, all.count(where: \.isNew))
        }
    }

    func compass(_ user: String) -> CompassClient {
        CompassClient(
            CompassSettings(serverURL: url, repository: "CCMRepo", database: "SAMPL"),
            as: .password(user: user, password: "secret-of-\(user)"), client: client)
    }

    /// A record that `user` saves with the vendor's own calls.
    func add(_ headline: String, as user: String = "ana", _ more: [FieldValue] = []) async throws -> String {
        try await compass(user).create(before: .never).commit(
            [FieldValue("Headline", headline), FieldValue("Severity", "3-Average")] + more, before: .never
        ).id
    }
}

/// The submitter's handler with a real database, and a stand-in for Compass over real HTTP. A worker's steps are taken
/// one by one; time passes when a test says so.
struct CommandWorld: ~Copyable {
    static let secretKey = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    static let rule = CommandRule(
        lease: .seconds(90), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60), attemptsMax: 20)
    /// Steps that a command takes at most, with what goes wrong.
    static let stepsMax = 80

    var acme: TestEnvironment
    let standIn: StandIn
    let gate = Gate()
    private let secrets: SecretBox
    private var handler: CommandHandler
    private var storedCount: Int64 = 0

    /// A command of somebody.
    struct Place: Hashable {
        let email: String
        let id: UUID
        var kind = Kind.defectCommand
    }

    private init(_ standIn: StandIn) throws {
        var acme = try TestEnvironment()
        let secrets = try SecretBox([Self.secretKey])
        var tracker = DefectTracker(environment: acme.id)
        (tracker.serverURL, tracker.repository, tracker.database) = (standIn.url, "CCMRepo", "SAMPL")
        try acme.connection.run(tracker.save())
        handler = Self.handler(standIn, secrets, gate)
        (self.standIn, self.secrets) = (standIn, secrets)
        self.acme = acme
    }

    private static func handler(_ standIn: StandIn, _ secrets: SecretBox, _ gate: Gate) -> CommandHandler {
        let client = standIn.client
        let trackers = OwnTrackers(secrets: secrets) { settings, account in
            GatedTracker(tracker: CompassClient(settings, as: account, client: client), gate: gate)
        }
        return CommandHandler(rule: rule, trackers: trackers, callMax: .seconds(10))
    }

    /// Runs `body` with a stand-in of its own, in which Ana and Bo have logins that are stored.
    static func run(_ body: @Sendable (inout CommandWorld) async throws -> Void) async throws {
        let service = try CompassService(CompassService.Configuration())
        service.system.load(StandIn.organisation)
        let client = Client()
        defer { client.shutDown() }
        try await withService({ try await service.run(onRunning: $0) }) { port in
            var world = try CommandWorld(
                StandIn(client: client, url: "http://127.0.0.1:\(port)", system: service.system))
            for user in ["ana", "bo"] { _ = try world.storeLogin("\(user)@example.com", user, "secret-of-\(user)") }
            try await body(&world)
        }
    }

    // MARK: People

    /// Stores a login as the gateway does.
    @discardableResult
    mutating func storeLogin(
        _ email: String, _ user: String?, _ secret: String, status: DefectAccount.Status = .unchecked
    ) throws -> Place {
        let realm = try acme.realm(.user(email))
        let place = SecretContext.personalDefectLogin(acme.id, realm: realm)
        let own = OwnDefectLogin(user: user, sealed: Bytea(try secrets.seal(secret, at: place)))
        storedCount += 1
        let account = DefectAccount(
            status: status, user: user, storedAt: Timestamp(millisecondsSinceEpoch: storedCount))
        let key = ObjectKey(realm: realm, kind: .defectAccount, id: Self.account(email))
        var batch = WriteBatch(environment: acme.id)
        batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
        for statement in own.save(of: realm, in: acme.id, decision: 0) { batch.also(statement) }
        _ = try batch.commit(on: &acme.connection)
        return Place(email: email, id: key.id, kind: .defectAccount)
    }

    private static func account(_ email: String) -> UUID {
        UUID(uuid: (email.utf8.first ?? 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    }

    mutating func account(_ email: String) throws -> DefectAccount? {
        try read(Place(email: email, id: Self.account(email), kind: .defectAccount), as: DefectAccount.self)
    }

    /// A device hands a command in.
    mutating func handIn(
        _ command: DefectCommand, as email: String = "ana@example.com", id: UUID = UUID()
    ) throws -> Place {
        var command = command
        command.submitRequested = true
        let json = String(decoding: try JSONEncoder().encode(command), as: UTF8.self)
        try acme.put([(id, json)], .defectCommand, into: .user(email))
        return Place(email: email, id: id)
    }

    mutating func delete(_ place: Place) throws {
        var batch = WriteBatch(environment: acme.id)
        batch.delete(
            ObjectKey(realm: try acme.realm(.user(place.email)), kind: place.kind, id: place.id), decision: 0,
            isEdit: true)
        _ = try batch.commit(on: &acme.connection)
    }

    private mutating func read<Fields: Decodable>(_ place: Place, as type: Fields.Type) throws -> Fields? {
        let key = ObjectKey(realm: try acme.realm(.user(place.email)), kind: place.kind, id: place.id)
        let object = try RealmObject.byKey(acme.connection.run(RealmObject.load([key], in: acme.id)))[key]
        return try object?.decoded(as: type, by: JSONDecoder())
    }

    mutating func command(_ place: Place) throws -> DefectCommand {
        try #require(try read(place, as: DefectCommand.self))
    }

    // MARK: The worker

    /// A step of a worker with a key: a decision, and the call that follows from it.
    struct Step {
        var disposition: Disposition<CommandHandler.Call>
        var answer: CommandHandler.Answer?
        var isMissed = false
    }

    mutating func decide(
        _ places: [Place], _ answers: [CommandHandler.Answer?] = [], attemptCount: Int = 0, canCall: Bool = true
    ) throws -> [Step] {
        var batch = WriteBatch(environment: acme.id)
        var items: [WorkItem<CommandHandler.Answer>] = []
        for (index, place) in places.enumerated() {
            let answer = index < answers.count ? answers[index] : nil
            var item = WorkItem<CommandHandler.Answer>(
                environment: acme.id,
                subject: EventSubject(realm: try .user(place.email), kind: place.kind, id: place.id),
                origin: answer.map { .answer($0) } ?? .event, attemptCount: attemptCount)
            item.canCall = canCall
            items.append(item)
        }
        let nexts = try handler.decide(items, in: acme.id, batch: &batch, on: &acme.connection)
        let missed = try batch.commit(on: &acme.connection).missed
        return nexts.enumerated().map { Step(disposition: $1, isMissed: missed.contains($0)) }
    }

    mutating func step(
        _ place: Place, _ answer: CommandHandler.Answer? = nil, attemptCount: Int = 0, canCall: Bool = true
    ) throws -> Step {
        let steps = try decide([place], [answer], attemptCount: attemptCount, canCall: canCall)
        return try #require(steps.first)
    }

    mutating func call(_ call: CommandHandler.Call) async throws -> CommandHandler.Answer? {
        let make = try handler.caller(on: &acme.connection, for: acme.id)
        let answer = await make(call)
        guard gate.isDead else { return answer }
        crash()
        return nil
    }

    /// The process ends; another one begins, once the leases are over.
    mutating func crash() {
        gate.reset()
        handler = Self.handler(standIn, secrets, gate)
        _ = try? passTime()
    }

    /// Whatever is under way is over.
    mutating func passTime() throws {
        try acme.connection.run("UPDATE defect.attempt SET lease_until = now() - interval '1 second'")
    }

    /// A worker works on a key until nothing is left to be done; it waits as long as it has to.
    ///
    /// - Returns: Why it had to.
    @discardableResult
    mutating func finish(_ place: Place) async throws -> [String] {
        var (answer, attemptCount, reasons): (CommandHandler.Answer?, Int, [String]) = (nil, 0, [])
        for _ in 0..<Self.stepsMax {
            let step = try step(place, answer, attemptCount: attemptCount)
            answer = nil
            if step.isMissed { continue }
            switch step.disposition {
            case .finished: return reasons
            case .again: continue
            case .call(let call, _): answer = try await self.call(call)
            case .park(let reason, _, let cause):
                reasons.append(reason)
                if cause != .planned { attemptCount += 1 }
                try passTime()
            case .dead(let reason): throw Dead(reason: reason)
            }
        }
        Issue.record("it does not end: \(reasons)")
        return reasons
    }

    struct Dead: Error { let reason: String }

    /// Hands a command in, and sees what comes of it.
    mutating func perform(_ command: DefectCommand, as email: String = "ana@example.com") async throws -> DefectCommand
    {
        let place = try handIn(command, as: email)
        try await finish(place)
        return try self.command(place)
    }

    /// Nothing is open any more.
    mutating func expectNothingOpen(_ place: SourceLocation = #_sourceLocation) throws {
        let rows = try acme.connection.run("SELECT count(*) FROM defect.attempt")[0].decode(Int64.self)
        #expect(rows == 0, "an attempt stays in the ledger", sourceLocation: place)
        #expect(standIn.sessions.known.isEmpty, "an edit session stays open", sourceLocation: place)
        #expect(standIn.sessions.new <= gate.unheard, "a new record stays open", sourceLocation: place)
    }
}
