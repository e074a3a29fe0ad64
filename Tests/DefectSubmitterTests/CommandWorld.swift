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

extension RunningEmulator where System == CompassSystem {
    /// Returns the records with a headline.
    func records(_ headline: String) -> [CompassRecord] {
        system.withState { state in
            state.records.compactMap(\.self).filter { !$0.isDeleted && $0.fields["Headline"] == headline }
        }
    }

    func record(_ id: String) -> CompassRecord? {
        system.withState { state in CompassRecord.number(ofID: id).flatMap { state.record($0) } }
    }

    /// Returns how often a record was saved.
    func saveCount(_ id: String) -> Int {
        system.withState { state in CompassRecord.number(ofID: id).map { state.history[$0 - 1].count } ?? 0 }
    }

    /// The open edit sessions, as user and record; sessions of new records are counted separately.
    var sessions: (existing: [String], new: Int) {
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

    /// Adds a record that `user` saves with the vendor's own calls.
    func add(_ headline: String, as user: String = "ana", _ more: [FieldValue] = []) async throws -> String {
        try await compass(user).create(before: .never).commit(
            [FieldValue("Headline", headline), FieldValue("Severity", "3-Average")] + more, before: .never
        ).id
    }
}

/// The submitter's handler with a real database, and a Compass emulator over real HTTP. A test runs a worker's steps
/// one by one, and advances the time.
struct CommandWorld: ~Copyable {
    static let organisation = CompassOrganisation(
        users: [
            CompassUser(name: "ana", password: "secret-of-ana", tokens: ["dG9rZW4tb2YtYW5h"]),
            CompassUser(name: "bo", password: "secret-of-bo"),
        ], projects: ["Harbour": ["Cranes", "Piers"], "Overhead": ["Meetings"]])
    static let secretKey = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    static let rule = CommandRule(
        lease: .seconds(900), settleMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60), attemptsMax: 20)
    /// Limit on steps of a command, including injected faults.
    static let stepsMax = 80

    var acme: TestEnvironment
    let compass: RunningEmulator<CompassSystem>
    let gate = FaultGate()
    private let secrets: SecretBox
    private var handler: CommandHandler
    private var storedCount: Int64 = 0

    /// A person's command or account.
    struct ObjectReference: Hashable {
        let email: String
        let id: UUID
        var kind = Kind.defectCommand
    }

    private init(_ compass: RunningEmulator<CompassSystem>) throws {
        var acme = try TestEnvironment()
        let secrets = try SecretBox([Self.secretKey])
        var tracker = DefectTracker(environment: acme.id)
        (tracker.serverURL, tracker.repository, tracker.database) = (compass.url, "CCMRepo", "SAMPL")
        try acme.connection.run(tracker.save())
        handler = Self.handler(compass, secrets, gate)
        (self.compass, self.secrets) = (compass, secrets)
        self.acme = acme
    }

    private static func handler(
        _ compass: RunningEmulator<CompassSystem>, _ secrets: SecretBox, _ gate: FaultGate
    ) -> CommandHandler {
        let client = compass.client
        let trackers = OwnLoginTrackers(secrets: secrets) { settings, account in
            GatedTracker(tracker: CompassClient(settings, as: account, client: client), gate: gate)
        }
        return CommandHandler(rule: rule, trackers: trackers, callMax: patienceMax)
    }

    /// Runs `body` with an emulator of its own, in which Ana and Bo have stored logins.
    static func run(_ body: @Sendable (inout CommandWorld) async throws -> Void) async throws {
        let emulator = try CompassEmulator()
        emulator.system.load(organisation)
        try await withEmulator(emulator.system, { try await emulator.run(onRunning: $0) }) { compass in
            var world = try CommandWorld(compass)
            for user in ["ana", "bo"] { _ = try world.storeLogin("\(user)@example.com", user, "secret-of-\(user)") }
            try await body(&world)
        }
    }

    // MARK: People

    /// Stores a login as the gateway does.
    @discardableResult
    mutating func storeLogin(
        _ email: String, _ user: String?, _ secret: String, status: DefectAccount.Status = .unchecked
    ) throws -> ObjectReference {
        let realm = try acme.realm(.user(email))
        let context = SecretContext.personalDefectLogin(acme.id, realm: realm)
        let own = OwnDefectLogin(user: user, sealed: Bytea(try secrets.seal(secret, at: context)))
        storedCount += 1
        let account = DefectAccount(
            status: status, user: user, storedAt: Timestamp(millisecondsSinceEpoch: storedCount))
        let key = ObjectKey(realm: realm, kind: .defectAccount, id: Self.account(email))
        var batch = WriteBatch(environment: acme.id)
        batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
        for statement in own.save(of: realm, in: acme.id, decision: 0) { batch.append(statement) }
        _ = try batch.commit(on: &acme.connection)
        return ObjectReference(email: email, id: key.id, kind: .defectAccount)
    }

    private static func account(_ email: String) -> UUID {
        UUID(uuid: (email.utf8.first ?? 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    }

    mutating func account(_ email: String) throws -> DefectAccount? {
        try read(ObjectReference(email: email, id: Self.account(email), kind: .defectAccount), as: DefectAccount.self)
    }

    /// Submits a command as a device does.
    mutating func handIn(
        _ command: DefectCommand, as email: String = "ana@example.com", id: UUID = UUID()
    ) throws -> ObjectReference {
        var command = command
        command.submitRequested = true
        let json = String(decoding: try JSONEncoder().encode(command), as: UTF8.self)
        try acme.put([(id, json)], .defectCommand, into: .user(email))
        return ObjectReference(email: email, id: id)
    }

    mutating func delete(_ reference: ObjectReference) throws {
        var batch = WriteBatch(environment: acme.id)
        batch.delete(
            ObjectKey(realm: try acme.realm(.user(reference.email)), kind: reference.kind, id: reference.id),
            decision: 0,
            isEdit: true)
        _ = try batch.commit(on: &acme.connection)
    }

    private mutating func read<Fields: Decodable>(_ reference: ObjectReference, as type: Fields.Type) throws -> Fields?
    {
        let key = ObjectKey(realm: try acme.realm(.user(reference.email)), kind: reference.kind, id: reference.id)
        let object = try RealmObject.byKey(acme.connection.run(RealmObject.load([key], in: acme.id)))[key]
        return try object?.decoded(as: type, by: JSONDecoder())
    }

    mutating func command(_ reference: ObjectReference) throws -> DefectCommand {
        try #require(try read(reference, as: DefectCommand.self))
    }

    // MARK: The worker

    /// A worker's step with a key: a decision, and the result of its call.
    struct Step {
        var disposition: Disposition<CommandHandler.Call>
        var result: CommandHandler.CallResult?
        var isMissed = false
    }

    mutating func decide(
        _ references: [ObjectReference], _ results: [CommandHandler.CallResult?] = [], attemptCount: Int = 0,
        canCall: Bool = true
    ) throws -> [Step] {
        var batch = WriteBatch(environment: acme.id)
        var items: [WorkItem<CommandHandler.CallResult>] = []
        for (index, reference) in references.enumerated() {
            let result = index < results.count ? results[index] : nil
            var item = WorkItem<CommandHandler.CallResult>(
                environment: acme.id,
                subject: EventSubject(realm: try .user(reference.email), kind: reference.kind, id: reference.id),
                origin: result.map { .result($0) } ?? .event, attemptCount: attemptCount)
            item.canCall = canCall
            items.append(item)
        }
        let dispositions = try handler.decide(items, in: acme.id, batch: &batch, on: &acme.connection)
        let missed = try batch.commit(on: &acme.connection).conflicts
        return dispositions.enumerated().map { Step(disposition: $1, isMissed: missed.contains($0)) }
    }

    mutating func step(
        _ reference: ObjectReference, _ result: CommandHandler.CallResult? = nil, attemptCount: Int = 0,
        canCall: Bool = true
    ) throws -> Step {
        let steps = try decide([reference], [result], attemptCount: attemptCount, canCall: canCall)
        return try #require(steps.first)
    }

    mutating func call(_ call: CommandHandler.Call) async throws -> CommandHandler.CallResult? {
        let make = try handler.caller(on: &acme.connection, for: acme.id)
        let result = await make(call)
        guard gate.hasCrashed else { return result }
        crash()
        return nil
    }

    /// Ends the process and starts another one after the leases have expired.
    mutating func crash() {
        gate.reset()
        handler = Self.handler(compass, secrets, gate)
        _ = try? passTime()
    }

    /// Expires all leases.
    mutating func passTime() throws {
        try acme.connection.run("UPDATE defect.attempt SET lease_until = now() - interval '1 second'")
    }

    /// Processes a key until nothing is left to do, without the delays.
    ///
    /// - Returns: The reasons of its deferrals.
    @discardableResult
    mutating func finish(_ reference: ObjectReference) async throws -> [String] {
        var (result, attemptCount, reasons): (CommandHandler.CallResult?, Int, [String]) = (nil, 0, [])
        for _ in 0..<Self.stepsMax {
            let step = try step(reference, result, attemptCount: attemptCount)
            result = nil
            if step.isMissed { continue }
            switch step.disposition {
            case .finished: return reasons
            case .reprocess: continue
            case .call(let call, _): result = try await self.call(call)
            case .deferred(let reason, _, let cause):
                reasons.append(reason)
                if cause != .planned { attemptCount += 1 }
                try passTime()
            case .deadLettered(let reason): throw DeadLetterError(reason: reason)
            }
        }
        Issue.record("not finished: \(reasons)")
        return reasons
    }

    struct DeadLetterError: Error { let reason: String }

    /// Submits a command and processes it to its end.
    mutating func perform(_ command: DefectCommand, as email: String = "ana@example.com") async throws -> DefectCommand
    {
        let reference = try handIn(command, as: email)
        try await finish(reference)
        return try self.command(reference)
    }

    /// Creates a query of all records, the newest first, in Ana's own folder.
    func addQuery(_ name: String, _ columns: [String] = ["id", "Headline"]) async throws -> String {
        let ana = compass.compass("ana")
        let folders = try await ana.folders()
        let folder = try #require(folders.first { $0.name == Folder.personalQueries })
        let query = QueryDefinition(
            name: name, folder: folder.id, recordType: "Defect",
            columns: columns.map { QueryDefinition.Column($0, sort: $0 == "id" ? .descending : .none) },
            filter: QueryFilter())
        let created = try await ana.create(query)
        return try #require(created.id)
    }

    /// Checks that no attempt and no session is open.
    mutating func expectNothingOpen(_ location: SourceLocation = #_sourceLocation) throws {
        let rows = try acme.connection.run("SELECT count(*) FROM defect.attempt")[0].decode(Int64.self)
        #expect(rows == 0, "an attempt stays in the ledger", sourceLocation: location)
        #expect(compass.sessions.existing.isEmpty, "an edit session stays open", sourceLocation: location)
        #expect(compass.sessions.new <= gate.unreportedRecords, "a new record stays open", sourceLocation: location)
    }
}
