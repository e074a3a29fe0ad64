import Essentials
import Foundation
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// `notice-deliverer` while it is killed.
    struct DeliveryFlowTests {
        /// The deliverer is killed after all sends and before any result is recorded: the mail server, the webhook
        /// receiver and the push services have the notices, but do not respond. Retries have the same ids. Then it is
        /// killed repeatedly: every notice arrives, and duplicates are identified by their ids.
        @Test(.timeLimit(.minutes(15)), arguments: Seeds.random(1, for: "kills of the deliverer"))
        func aKilledDelivererLosesNothingAndRepeatsUnderTheSameIDs(seed: UInt64) async throws {
            let receivers = try NoticeReceivers()
            try await withCluster("deliverer-kills", .withDeliverer(receivers)) { cluster in
                let flow = try await DeliveryFlow(cluster, receivers)
                try flow.choose("hold@example.com", asking: "?hold=1")
                try receivers.set(.init(flow.tokens(of: "hold@example.com").mapValues { _ in [.hold] }))
                let first = try flow.tell("hold@example.com", "SAMPL1 (Zähler) has been modified")
                try await flow.waitFor(5) { $0.kind != "oauth" }
                await cluster.kill9(.noticeDeliverer)
                #expect(try flow.waitingCount() == 5, "nothing is recorded")
                try cluster.start(.noticeDeliverer)
                try await flow.waitFor(10) { $0.kind != "oauth" }
                try await flow.waitUntilNothingWaits()
                let all = try receivers.received()
                for kind in DeliveryFlow.kinds {
                    let ids = try all.filter { $0.kind == kind }.map(DeliveryFlow.id)
                    #expect(ids.count == 2 && Set(ids).count == 1, "\(kind): \(ids)")
                }
                #expect(all.first { $0.kind == "webhook" }?.text.contains(first.text) == true)

                try flow.choose("ana@example.com")
                let killer = Killer(cluster: cluster, parts: [.noticeDeliverer], seed: seed, pause: .seconds(2))
                async let kills: Void = killer.kill(5)
                var texts: Set<String> = []
                for index in 1...30 {
                    texts.insert("SAMPL\(index + 100) has been modified")
                    _ = try flow.tell("ana@example.com", "SAMPL\(index + 100) has been modified")
                    try await Task.sleep(for: .milliseconds(200))
                }
                try await kills
                try await flow.waitUntilNothingWaits()
                try flow.expect(texts, since: all.count)
            }
        }
    }
}

extension LocalCluster.Options {
    fileprivate static func withDeliverer(_ receivers: NoticeReceivers) -> LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .noticeDeliverer]
        options.variables[.noticeDeliverer, default: [:]].merge([
            "FIELDPOST_DELIVERER_CA_FILE": receivers.certificateFile, "FIELDPOST_DELIVERER_RETRY_FIRST": "500ms",
            "FIELDPOST_DELIVERER_CALL_MAX": "20s",
        ]) { $1 }
        return options
    }
}

/// People of an environment whose notices go to the receivers.
private struct DeliveryFlow {
    private static let environment = "flow"
    static let kinds = ["webhook", "mail", "push", "apns", "fcm"]
    let cluster: LocalCluster
    let receivers: NoticeReceivers

    init(_ cluster: LocalCluster, _ receivers: NoticeReceivers) async throws {
        self.cluster = cluster
        self.receivers = receivers
        try await cluster.runCommand([
            "environment", "add", Self.environment, "--domain", "example.com", "--issuer", cluster.identityURL,
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
        ])
        try await cluster.runCommand(
            [
                "environment", "deliveries", "set", Self.environment, "--webhook-host", "127.0.0.1",
                "--private-addresses", "--smtp", receivers.tlsServer, "--mail-from", "post@example.com",
                "--push-contact", "mailto:it@example.com", "--apns-key-from", "APNS_KEY", "--apns-key-id",
                NoticeReceivers.keyID, "--apns-team", NoticeReceivers.team, "--apns-topic", NoticeReceivers.topic,
                "--apns-server", receivers.apnsURL, "--fcm-account-from", "FCM_ACCOUNT", "--fcm-server",
                receivers.fcmURL,
            ],
            variables: [
                "APNS_KEY": try receivers.appleKey(),
                "FCM_ACCOUNT": String(decoding: try receivers.firebaseAccount(), as: UTF8.self),
            ])
        let secret = try await cluster.runCommand(["environment", "deliveries", "secret", Self.environment])
        try receivers.set(secret: secret)
    }

    // MARK: What people and other services do

    /// The tokens of a person's devices by the names of their services.
    private func devices(of email: String) -> [(service: DeviceTarget.Service, token: String)] {
        let digits = email.utf8.reduce(into: "") { $0 += String($1, radix: 16) }
        let apple = String(repeating: "0", count: 64 - digits.utf8.count) + digits
        return [(.apns, apple), (.fcm, "fcm:\(digits)")]
    }

    func tokens(of email: String) -> [String: String] {
        Dictionary(uniqueKeysWithValues: devices(of: email).map { ($0.token, $0.service.rawValue) })
    }

    /// Logs in a device of a person, as onboarding does. Returns its id.
    private func logIn(_ email: String) throws -> String {
        let name = (0..<32).map { _ in UInt8.random(in: 0...255) }
        var connection = try Connection(cluster.conninfo)
        try connection.run([
            """
            INSERT INTO access.person (environment_id, email, issuer, subject)
            SELECT environment_id, \(email), issuer, \(email) FROM access.provider ON CONFLICT DO NOTHING
            """,
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, device, newest, issuer, subject)
            SELECT environment_id, id, 'sealed', \(Bytea(name)), \(Bytea(name)), issuer, subject FROM access.person
            WHERE email = \(email)
            """,
        ])
        return name.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// A person chooses all channels.
    func choose(_ email: String, asking: String = "") throws {
        let browser = PushTarget(
            endpoint: receivers.webURL + "/push/\(email)\(asking)", p256dh: receivers.browser.p256dh,
            auth: receivers.browser.auth)
        let device = try logIn(email)
        let choice = DeliveryChoice(
            webhook: receivers.webURL + "/hook/\(email)\(asking)", email: true, pushes: [browser],
            devices: devices(of: email).map { DeviceTarget(service: $0.service, token: $0.token, device: device) })
        try put(.deliveryChoice, UUID(), of: email, choice)
    }

    func tell(_ email: String, _ text: String) throws -> UUID {
        let id = UUID()
        try put(
            .notice, id, of: email,
            Notice(about: nil, code: .defectModified, text: text, timestamp: Timestamp.now()))
        return id
    }

    private func put(_ kind: Kind, _ id: UUID, of email: String, _ fields: some Encodable) throws {
        var connection = try Connection(cluster.conninfo)
        let rows = try connection.run("SELECT id FROM realm.environment WHERE name = \(Self.environment)")
        let environment = EnvironmentID(rawValue: try rows[0].value(0))
        var directory = RealmDirectory()
        let realm = try directory.id(
            of: try RealmPath.user(email), in: environment, create: true, on: &connection)
        var batch = WriteBatch(environment: environment)
        batch.put(
            ObjectKey(realm: try #require(realm), kind: kind, id: id), try CanonicalJSON(encoding: fields),
            decision: 0)
        _ = try batch.commit(on: &connection)
    }

    // MARK: Results

    func waitFor(_ count: Int, _ isMeant: (NoticeReceivers.Received) -> Bool) async throws {
        try await eventually("\(count) things are received") {
            let found = try receivers.received().count(where: isMeant)
            return found >= count ? nil : "\(found)"
        }
    }

    func waitingCount() throws -> Int64 {
        var connection = try Connection(cluster.conninfo)
        return try connection.run("SELECT count(*) FROM delivery.shipment WHERE state = 'waiting'")[0].value(0)
    }

    func waitUntilNothingWaits() async throws {
        try await eventually("all is delivered") {
            var connection = try Connection(cluster.conninfo)
            let counts = try connection.run([
                """
                SELECT (SELECT count(*) FROM store.object WHERE kind = \(Kind.notice)) * 5
                    - (SELECT count(*) FROM delivery.shipment WHERE state = 'sent')
                """,
                "SELECT count(*) FROM delivery.shipment WHERE state NOT IN ('waiting', 'sent')",
            ])
            let failed = try counts[1][0].value(0, as: Int64.self)
            if failed > 0 { throw ClusterFailure("\(failed) were given up") }
            let left = try counts[0][0].value(0, as: Int64.self)
            return left == 0 ? nil : "\(left) left"
        }
    }

    /// `webhook-id`, `Topic`, a collapse id or `Message-ID`.
    static func id(_ received: NoticeReceivers.Received) throws -> String {
        let mail = received.text.components(separatedBy: "\r\n").first { $0.hasPrefix("Message-ID: ") }
        let google = received.text.firstMatch(of: #/"collapseId":"([^"]+)"/#).map { String($0.1) }
        let headers = received.headers
        return try #require(
            headers["webhook-id"] ?? headers["topic"] ?? headers["apns-collapse-id"] ?? google ?? mail, "\(received)")
    }

    /// Each text arrived by each channel, except for duplicates with the same id, and no other text arrived.
    func expect(_ texts: Set<String>, since first: Int) throws {
        let received = try receivers.received().dropFirst(first)
        for kind in Self.kinds {
            var idsByText: [String: Set<String>] = [:]
            for one in received where one.kind == kind {
                let text = try #require(texts.first { one.text.contains($0) }, "\(one)")
                idsByText[text, default: []].insert(try Self.id(one))
            }
            #expect(Set(idsByText.keys) == texts, "\(kind)")
            #expect(idsByText.values.allSatisfy { $0.count == 1 }, "\(kind)")
        }
        #expect(received.allSatisfy { $0.kind != "malformed" })
    }
}
