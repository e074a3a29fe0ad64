import Crypto
import Deliveries
import Essentials
import FoundationEssentials
import LocalCluster
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import Synchronization
import Tenants
import TestSupport
import Testing

@testable import KeyedWorker
@testable import NoticeDeliverer

/// The deliverer's handler with a real database, and real receivers. A test runs a worker's steps one by one, and can
/// inject events between them.
struct DeliveryWorld: ~Copyable {
    static let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    private static let key = Data(repeating: 5, count: 32).base64EncodedString()

    /// The handler's clock.
    final class Time: Sendable {
        private let value: Mutex<Timestamp>
        init(_ time: Timestamp) { value = Mutex(time) }
        var now: Timestamp { value.withLock { $0 } }
        func pass(_ duration: Duration) { value.withLock { $0 = $0.adding(duration) } }
    }

    var acme: TestEnvironment
    let receivers: NoticeReceivers
    let time: Time
    private(set) var person = UUID()
    private(set) var path: RealmPath
    private var handler: DeliveryHandler
    private var result: DeliveryCallResult?

    init(email: String = "ana@example.com", _ change: (inout DeliverySettings) -> Void = { _ in }) throws {
        var acme = try TestEnvironment()
        let receivers = try NoticeReceivers(secret: Self.secret)
        let path = try RealmPath.user(email)
        let box = try SecretBox([Self.key])
        let environment = acme.id
        var settings = DeliverySettings(environment: environment)
        func sealed(_ secret: [UInt8], _ which: SecretContext.DeliverySecret) throws -> Bytea {
            Bytea(try box.seal(secret, at: SecretContext.delivery(which, in: environment)))
        }
        settings.webhookHosts = ["127.0.0.1", "localhost"]
        settings.webhookSecret = try sealed(Array(Self.secret.utf8), .webhook)
        settings.allowsPrivate = true
        settings.mailServer = receivers.startTLSServer
        (settings.mailUser, settings.mailPassword) = ("fieldpost", try sealed(Array("post".utf8), .mail))
        settings.mailFrom = "post@example.com"
        let key = P256.Signing.PrivateKey()
        settings.pushContact = "mailto:it@example.com"
        settings.pushPublicKey = PushSender(key: key, contact: "").applicationServerKey
        settings.pushKey = try sealed(Array(key.rawRepresentation), .push)
        settings.apns = .init(
            topic: NoticeReceivers.topic, team: NoticeReceivers.team, keyID: NoticeReceivers.keyID,
            key: try sealed(Array(receivers.appleKey().utf8), .apns), server: receivers.apnsURL)
        let account = try receivers.firebaseAccount()
        settings.fcm = .init(
            project: try FCMAccount(json: account).project, account: try sealed(account, .fcm),
            server: receivers.fcmURL)
        change(&settings)
        try acme.connection.run(settings.save())
        let time = Time(Timestamp.now())
        let handler = try Self.handler(receivers, time)
        (self.receivers, self.path, self.time) = (receivers, path, time)
        self.handler = handler
        self.acme = acme
    }

    static func handler(
        _ receivers: NoticeReceivers, _ time: Time, callMax: Duration = patienceMax
    ) throws -> DeliveryHandler {
        let clients = DeliveryClientFactory(
            caFile: receivers.certificateFile, callMax: callMax, secrets: try SecretBox([key]),
            now: { time.now })
        var limits = DeliveryHandler.Limits()
        limits.ageMax = .seconds(3_600)
        return DeliveryHandler(clients, limits: limits, logger: Logger(label: "deliverer"), now: { time.now })
    }

    // MARK: People and other services

    /// Switches to another person.
    mutating func switchPerson(to email: String) throws { (person, path) = (UUID(), try .user(email)) }

    /// Switches back to a person.
    mutating func returnPerson(_ person: UUID, _ email: String) throws {
        (self.person, path) = (person, try .user(email))
    }

    func browser(_ path: String = "/push") -> PushTarget {
        PushTarget(
            endpoint: receivers.webURL + path, p256dh: receivers.browser.p256dh, auth: receivers.browser.auth)
    }

    /// Logs in a device of the person, as onboarding does.
    ///
    /// - Returns: Its id, which targets refer to.
    mutating func logIn() throws -> String {
        let (name, email) = (Bytea((0..<32).map { _ in UInt8.random(in: 0...255) }), path.email ?? "")
        let environment = acme.id.rawValue
        try acme.connection.run([
            """
            INSERT INTO access.provider (environment_id, issuer, audience, jwks_url)
            VALUES (\(environment), 'https://issuer', 'a', 'https://issuer/jwks') ON CONFLICT DO NOTHING
            """,
            """
            INSERT INTO access.person (environment_id, email, issuer, subject)
            VALUES (\(environment), \(email), 'https://issuer', \(email)) ON CONFLICT DO NOTHING
            """,
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, device, newest, issuer, subject)
            SELECT \(environment), id, 'sealed', \(name), \(name), issuer, subject FROM access.person
            WHERE environment_id = \(environment) AND email = \(email)
            """,
        ])
        return name.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the target of a device that has just logged in.
    mutating func device(_ service: DeviceTarget.Service, _ token: String) throws -> DeviceTarget {
        DeviceTarget(service: service, token: token, device: try logIn())
    }

    /// Revokes the credentials of all of the person's devices, as `fieldpost environment revoke` does.
    mutating func revokeDevices() throws {
        try acme.connection.run(
            """
            UPDATE onboarding.refresh_token t SET newest = NULL, former = NULL FROM access.person p
            WHERE p.environment_id = t.environment_id AND p.id = t.person_id AND p.email = \(path.email ?? "")
            """)
    }

    mutating func choose(_ choice: DeliveryChoice) throws {
        let json = String(decoding: try JSONEncoder().encode(choice), as: UTF8.self)
        try #require(Kind.deliveryChoice.objection(to: Array(json.utf8)) == nil)
        try acme.put([(person, json)], .deliveryChoice, into: path)
    }

    mutating func choice() throws -> DeliveryChoice? {
        let key = ObjectKey(realm: try acme.realm(path), kind: .deliveryChoice, id: person)
        let object = try RealmObject.byKey(acme.connection.run(RealmObject.load([key], in: acme.id)))[key]
        return try object?.decoded(as: DeliveryChoice.self, by: JSONDecoder())
    }

    /// Writes a notice and processes its event.
    @discardableResult
    mutating func notify(
        _ text: String, _ code: Notice.Code = .defectModified, isRead: Bool = false, id: UUID = UUID()
    ) throws -> UUID {
        let notice = Notice(about: nil, code: code, text: text, timestamp: time.now, isRead: isRead)
        try acme.put([(id, String(decoding: try JSONEncoder().encode(notice), as: UTF8.self))], .notice, into: path)
        try handle(id)
        return id
    }

    mutating func delete(_ id: UUID) throws {
        var batch = WriteBatch(environment: acme.id)
        batch.delete(ObjectKey(realm: try acme.realm(path), kind: .notice, id: id), decision: 0)
        _ = try batch.commit(on: &acme.connection)
    }

    // MARK: The worker

    /// Processes the event of a notice.
    mutating func handle(_ id: UUID) throws {
        let subject = EventSubject(realm: path, kind: .notice, id: id)
        guard case .finished = try decide(subject, .event) else {
            Issue.record("a notice's event finishes immediately")
            return
        }
    }

    private mutating func decide(
        _ subject: EventSubject, _ origin: WorkItem<DeliveryCallResult>.Origin
    ) throws -> Disposition<DeliveryCall> {
        var batch = WriteBatch(environment: acme.id)
        let item = WorkItem(environment: acme.id, subject: subject, origin: origin, attemptCount: 0)
        let dispositions = try handler.decide([item], in: acme.id, batch: &batch, on: &acme.connection)
        let missed = try batch.commit(on: &acme.connection).conflicts
        try #require(missed.isEmpty)
        return try #require(dispositions.first)
    }

    /// Processes the person's choice with the last result, and makes the decided call.
    ///
    /// - Returns: The shipments sent; or the delay with its reason.
    mutating func step() async throws -> (sent: [Shipment], wait: Duration?, reason: String?) {
        let subject = EventSubject(realm: path, kind: .deliveryChoice, id: person)
        let disposition = try decide(subject, result.map { .result($0) } ?? .retry)
        result = nil
        switch disposition {
        case .call(let call, _):
            let makeCall = try handler.caller(on: &acme.connection, for: acme.id)
            result = await makeCall(call)
            return (call.shipments, nil, nil)
        case .deferred(let reason, let wait, _): return ([], wait, reason)
        case .finished: return ([], nil, nil)
        case .reprocess, .deadLettered:
            Issue.record("\(disposition)")
            return ([], nil, nil)
        }
    }

    /// Repeats steps until nothing is sent now.
    ///
    /// - Returns: The delay with its reason.
    @discardableResult
    mutating func settle() async throws -> (wait: Duration?, reason: String?) {
        while true {
            let (sent, wait, reason) = try await step()
            if sent.isEmpty { return (wait, reason) }
        }
    }

    /// Ends the process before it records the last result.
    mutating func crash() throws {
        result = nil
        handler = try Self.handler(receivers, time)
    }

    // MARK: Stored data

    /// Returns `channel state attempts` and the reason of all rows, sorted.
    mutating func ledger() throws -> [String] {
        try acme.connection.run("SELECT way, state, attempts, coalesce(last_error, '') FROM delivery.shipment")
            .decode(String.self, String.self, Int32.self, String.self)
            .map { "\($0) \($1) \($2) \($3)".trimmed }.sorted()
    }

    /// Returns the deferred keys.
    mutating func parked() throws -> [String] {
        try acme.connection.run("SELECT key FROM pipeline.parked ORDER BY key").decode(String.self)
    }
}

extension String {
    fileprivate var trimmed: String { hasSuffix(" ") ? String(dropLast()) : self }
}
