import Essentials
import Foundation
import HTTPClient
import Kafka
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// A person to erase, whose texts contain `anasecret`, and a manager, who stays.
struct ErasureFlow {
    private static let secret = "anasecret"
    /// Of APNs.
    private static let token = String(repeating: "5a", count: 32)

    private let cluster: LocalCluster
    let email: String
    private var own: DefectPhone
    private var other: DefectPhone
    let personID: UUID
    private let otherID: UUID
    private let image = UUID()

    /// Texts that identify the person, in lower case.
    var texts: [String] { [email, personID.text, Self.secret, Self.token, image.text] }

    init(_ cluster: LocalCluster, _ organisation: SmallOrganisation) async throws {
        self.cluster = cluster
        let manager = organisation.people[1].email
        email = organisation.people[0].email
        own = try await DefectPhone(cluster, email)
        other = try await DefectPhone(cluster, manager)
        for phone in [own.phone, other.phone] {
            try await eventually("the gateway has the environment") {
                let status = try await phone.status()
                return status == 200 ? nil : "\(status)"
            }
        }
        personID = try await FlowTests.person(own.phone)
        otherID = try await FlowTests.person(other.phone)
        try await cluster.runCommand(["environment", "role", "manager", manager])
        let phone = other.phone
        try await eventually("the manager opens /manager") {
            let response = try await phone.client.send(
                Request("GET", cluster.gatewayURL + "/v1/realms", headers: phone.headers))
            let text = String(decoding: response.body, as: UTF8.self)
            return text.contains("\"/manager\"") ? nil : text
        }
    }

    /// Notices are delivered by e-mail and APNs.
    static func deliver(to receivers: NoticeReceivers, from cluster: LocalCluster) async throws {
        try await cluster.runCommand(
            [
                "environment", "deliveries", "set", SmallOrganisation.environment, "--private-addresses", "--smtp",
                receivers.tlsServer, "--mail-from", "post@example.com", "--apns-key-from", "APNS_KEY", "--apns-key-id",
                NoticeReceivers.keyID, "--apns-team", NoticeReceivers.team, "--apns-topic", NoticeReceivers.topic,
                "--apns-server", receivers.apnsURL,
            ], variables: ["APNS_KEY": try receivers.appleKey()])
    }

    // MARK: Writing

    /// The person writes an entry and all that a device writes; the manager assigns tasks, and shares a note.
    mutating func writeObjects() async throws {
        try await Self.submit(own.phone, text: Self.secret)
        let response = try await own.phone.client.send(
            Request("PUT", cluster.gatewayURL + "/v1/blobs/\(image.text)", headers: own.phone.headers, body: Self.png))
        try #require(response.status == 201, "\(String(decoding: response.body, as: UTF8.self))")
        let device = DeviceTarget(service: .apns, token: Self.token, device: try logIn())
        try own.enqueue(.put, .deliveryChoice, personID, DeliveryChoice(email: true, devices: [device]))
        try own.enqueue(
            .patch, .person, personID, ["name": Self.secret, "lastName": Self.secret, "avatar": image.text], in: .common
        )
        let lookup = PersonLookup(name: Self.secret, email: email)
        try own.enqueue(.put, .personLookup, personID, lookup, in: .common)
        try own.enqueue(.put, .privateProfile, personID, PrivateProfile(phone: Self.secret))
        try own.enqueue(
            .put, .location, personID, Location(latitude: 55.7, longitude: 12.6, placeName: Self.secret))
        let (note, deleted) = (UUID(), UUID())
        try own.enqueue(.put, .note, note, Note(title: Self.secret))
        try own.enqueue(.put, .note, deleted, Note(title: Self.secret))
        try own.enqueue(.delete, .note, deleted)
        let link = SharedItem(kind: .note, item: note, recipient: otherID)
        try own.enqueue(.put, .sharedItem, SharedItem.id(of: note, with: otherID), link)
        try await own.send()

        let (team, plan) = (UUID(), UUID())
        try other.enqueue(.put, .team, team, Team(name: "Roofs"), in: .common)
        let membership = Membership(person: personID, team: team)
        try other.enqueue(.put, .membership, Membership.id(of: personID, in: team), membership, in: .common)
        let tasks = [
            FieldTask(title: "Pipe", assignee: personID), FieldTask(title: "Tube", assignee: personID, team: team),
        ]
        for task in tasks { try other.enqueue(.put, .fieldTask, UUID(), task, in: .manager) }
        try other.enqueue(.put, .note, plan, Note(title: "Plan"))
        let shared = SharedItem(kind: .note, item: plan, recipient: personID)
        try other.enqueue(.put, .sharedItem, SharedItem.id(of: plan, with: personID), shared)
        try await other.send()
    }

    /// One pixel.
    private static let png = Array(
        Data(
            base64Encoded: """
                iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
                """) ?? Data())

    /// Logs in a device of the person, as onboarding does. Returns its id.
    private func logIn() throws -> String {
        let name = (0..<32).map { _ in UInt8.random(in: 0...255) }
        var connection = try Connection(cluster.conninfo)
        try connection.run(
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, device, newest, device_name, issuer,
                subject)
            SELECT environment_id, id, 'sealed', \(Bytea(name)), \(Bytea(name)), \(Self.secret), issuer, subject
            FROM access.person WHERE email = \(email)
            """)
        return name.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Waits until the services have copied and delivered everything.
    func waitForCopies(_ receivers: NoticeReceivers) async throws {
        try await eventually("the manager sees the person") {
            let objects = try await other.phone.read()
            let kinds = objects.filter { "\($0.fields)".lowercased().contains(Self.secret) }.map(\.kind)
            return Set(kinds).isSuperset(of: ["Location", "Note", "Notice", "Person"]) ? nil : "\(kinds)"
        }
        try await eventually("the person has both tasks and the shared note") {
            let objects = try await own.phone.read()
            let count = objects.count { ["Pipe", "Tube", "Plan"].contains($0.fields["title"] as? String) }
            return count == 3 ? nil : "\(count)"
        }
        try await eventually("the notices are delivered") {
            let kinds = Set(try receivers.received().map(\.kind))
            return kinds.isSuperset(of: ["mail", "apns"]) ? nil : "\(kinds)"
        }
    }

    /// The manager submits an entry, which is released.
    func submitForOther() async throws { try await Self.submit(other.phone, text: "roof") }

    /// Submits an entry on the first project when the person's choices have arrived, and waits for its release.
    private static func submit(_ phone: IntegrationPhone, text: String) async throws {
        try await eventually("\(phone.email) has choices") {
            let kinds = try await phone.read().map(\.kind)
            return kinds.contains("ReportingTemplate") ? nil : "\(kinds)"
        }
        let objects = try await phone.read()
        let template = try #require(objects.first { $0.kind == "ReportingTemplate" }).id
        let choices = [("Customer", "1"), ("Project", "P1"), ("Accounting code", "P1.1")]
        let reporting = try choices.map { name, reference in
            let context = try #require(
                objects.first { $0.kind == "ReportingContext" && $0.fields["name"] as? String == name })
            let node = try #require(
                objects.first {
                    $0.realm.hasPrefix("/catalogues/") && $0.fields["referenceId"] as? String == reference
                })
            return #"{"context":"\#(context.id)","node":"\#(node.id)"}"#
        }
        let day = Timestamp.now().day.adding(days: -1)
        let id = UUID().text
        try await phone.write(
            "put", id,
            """
            {"reportingTemplate":"\(template)","entryDate":"\(day)","durationSeconds":3600,"text":"\(text)",
             "reporting":[\(reporting.joined(separator: ","))],"submitRequested":true}
            """)
        try await eventually("the entry of \(phone.email) is released") {
            let fields = try await phone.read().first { $0.id == id }?.fields
            return fields?["status"] as? String == "released" ? nil : "\(fields ?? [:])"
        }
    }

    // MARK: Erasing

    /// - Returns: The report.
    func erase() async throws -> String {
        try await cluster.runCommand(["environment", "erase", SmallOrganisation.environment, email, "--yes", "--json"])
    }

    /// Removes the tombstones that are published.
    func compact() throws {
        var connection = try Connection(cluster.conninfo)
        let rows = try connection.run("SELECT id FROM realm.environment WHERE name = \(SmallOrganisation.environment)")
        let environment = EnvironmentID(rawValue: try rows[0].value(0))
        while case .removed(let count) = try Compaction.step(
            environment, keep: .zero, countMax: 1_000, on: &connection), count > 0
        {}
    }

    // MARK: Searching

    /// The tables with a text in any column, in upper or lower case.
    func tables(with text: String) throws -> [String] {
        var connection = try Connection(cluster.conninfo)
        let tables = try connection.run(
            """
            SELECT table_schema || '.' || table_name FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
            """
        ).decode(String.self)
        var found: [String] = []
        for table in tables {
            let name = Statement(stringLiteral: table)
            let rows = try connection.run(
                "SELECT count(*) FROM \(name) t WHERE strpos(lower(to_jsonb(t)::text), \(text)) > 0")
            if try rows[0].decode(Int64.self) > 0 { found.append(table) }
        }
        return found
    }

    /// The topics with a text in the key, a header or the value of any message, in order.
    func topics(with texts: [String]) async throws -> [String] {
        let brokers = cluster.brokers
        return try await onOwnThread { try Self.topics(with: texts, on: brokers) }
    }

    private static func topics(with texts: [String], on brokers: String) throws -> [String] {
        var consumer = try Consumer(
            brokers: brokers, group: "search-\(UUID().text)", topics: Topics.all.map(\.name))
        let partitionCount = Topics.all.reduce(0) { $0 + $1.partitions }
        var found: Set<String> = []
        /// The ends of partitions with messages, when all partitions are assigned.
        var ends: [TopicPartition: Int64]?
        let deadline = ContinuousClock.now + .seconds(240)
        while true {
            try #require(ContinuousClock.now < deadline, "the topics were not read to their ends")
            for message in try consumer.nextBatch(countMax: 1_000, waitMax: .milliseconds(100)) {
                var bytes = (message.key ?? []) + (message.value ?? [])
                message.forEachHeader { bytes += $1.copied }
                let content = String(decoding: bytes, as: UTF8.self).lowercased()
                if texts.contains(where: { content.contains($0) }) { found.insert(message.topic) }
            }
            let assignment = consumer.assignment
            if ends == nil, assignment.count == partitionCount {
                let (beginnings, failure) = try consumer.beginnings(of: assignment)
                if failure == nil {
                    let filled = beginnings.filter { $0.first < $0.end }
                    ends = Dictionary(uniqueKeysWithValues: filled.map { ($0.partition, $0.end) })
                }
            }
            let next = consumer.nextOffsets
            if let ends, ends.allSatisfy({ ((next[$0.key] ?? nil) ?? 0) >= $0.value }) { return found.sorted() }
        }
    }

    /// The services, and the database, whose log has a text.
    func logs(with texts: [String]) throws -> [String] {
        try (LocalCluster.Part.services + [.database]).map(\.name).filter { name in
            let path = cluster.folder.logPath(name)
            guard FileManager.default.fileExists(atPath: path) else { return false }
            let log = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self).lowercased()
            return texts.contains { log.contains($0) }
        }
    }
}
