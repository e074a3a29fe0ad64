import DeviceClient
import Essentials
import Foundation
import HTTPClient
import Kafka
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

/// Data that services of an earlier build left; `Recording/README.md` describes them.
struct Recording {
    /// The number of the newest schema file of that build.
    private static let schemaVersion = 29
    static let environment = "flow"

    /// Ids of recorded objects.
    struct IDs: Decodable {
        let released, invalid, submitted, draft, unconsumed, unpublished, queued: UUID
        let note, secondNote, thirdNote, task: UUID
        let integrationKey: String
    }

    private struct RecordedMessage: Decodable {
        let topic, key: String
        let partition: Int32
        let offset: Int64
        /// Pairs of a name and a value.
        let headers: [[String]]
        let value: String?
    }

    let ids: IDs

    init() throws { ids = try JSONDecoder().decode(IDs.self, from: Data(Self.text(of: "ids.json").utf8)) }

    /// The text of a file, as if it had been recorded yesterday: stored results have a limited lifetime.
    private static func text(of name: String) throws -> String {
        let file = projectRoot.appendingPathComponent("Tests/FlowTests/Recording/" + name)
        let recorded = try #require(Timestamp("2026-11-26T10:51:38Z"))
        let yesterday = Timestamp.now().day.adding(days: -1)
        let days = recorded.day.days(until: yesterday)
        // Times in milliseconds begin with this second.
        let second = recorded.millisecondsSinceEpoch / 1_000
        return try String(contentsOf: file, encoding: .utf8)
            .replacing(recorded.day.description, with: yesterday.description)
            .replacing("\(second)", with: "\(second + Int64(days) * 86_400)")
    }

    /// The options of a cluster without services.
    ///
    /// - Parameter schemaFolder: A new folder for the schema files of the earlier build.
    static func options(schemaFolder: URL) throws -> LocalCluster.Options {
        try FileManager.default.createDirectory(at: schemaFolder, withIntermediateDirectories: true)
        let files = try FileManager.default.contentsOfDirectory(atPath: LocalCluster.schemaFolder)
        for file in files where (Int(file.prefix(3)) ?? .max) <= schemaVersion {
            try FileManager.default.copyItem(
                atPath: LocalCluster.schemaFolder + "/" + file, toPath: schemaFolder.path + "/" + file)
        }
        var options = LocalCluster.Options.quick
        options.services = []
        options.idle = LocalCluster.Part.ofTheDemo
        options.schemaFolder = schemaFolder.path
        return options
    }

    /// Restores the database, the back end's records and the topics, and migrates the database.
    func restore(into cluster: LocalCluster) async throws {
        let text = try Self.text(of: "database.dump")
            .replacing("http://sap.invalid", with: cluster.sapURL)
            .replacing("http://identity.invalid", with: cluster.identityURL)
        let clear = """
            SET LOCAL session_replication_role = replica;
            DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('%I.%I', schemaname, tablename), ', ')
                FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')); END $$;
            """
        var connection = try Connection(cluster.conninfo)
        try connection.runScript(clear + text)
        try await cluster.runCommand(["migrate", "--schema", LocalCluster.schemaFolder])
        // Another server has the database now, with everything that was committed.
        try await cluster.runCommand(["restore", "--nothing-lost"])
        await cluster.kill9(.sap)
        try Data(Self.text(of: "sap.jsonl").utf8).write(to: URL(filePath: cluster.folder.path + "/sap.journal"))
        try await cluster.startAll([.sap])
        try publish(to: cluster)
    }

    /// Produces the recorded messages.
    private func publish(to cluster: LocalCluster) throws {
        let decoder = JSONDecoder()
        let messages = try Self.text(of: "messages.jsonl").split(separator: "\n").map {
            try decoder.decode(RecordedMessage.self, from: Data($0.utf8))
        }
        var producer = try Producer(brokers: cluster.brokers)
        for (index, message) in messages.enumerated() {
            try producer.send(
                message.topic, key: Array(message.key.utf8), value: message.value.map { Array($0.utf8) },
                headers: message.headers.map { (name: $0[0], value: Array($0[1].utf8)) }, tag: UInt64(index))
        }
        let isFlushed = producer.flush(waitMax: .seconds(240))
        try #require(isFlushed)
        let deliveries = producer.deliveries(waitMax: .zero)
        try #require(deliveries.count == messages.count)
        // The partition follows from the key.
        for delivery in deliveries {
            let message = messages[Int(delivery.tag)]
            #expect(
                delivery.topicPartition == TopicPartition(topic: message.topic, partition: message.partition)
                    && delivery.offset == message.offset, "\(message.topic) \(message.key)")
        }
    }

    /// A person's device as it was saved, except for its list of kinds: a version of the app that supports more kinds
    /// downloads their realms again.
    func phone(_ number: Int, of cluster: LocalCluster) async throws -> RecordedPhone {
        let text = try Self.text(of: "person\(number).json").replacing(/"kinds":\[[^\]]*\]/, with: #""kinds":["*"]"#)
        let state = try JSONDecoder().decode(DeviceState.self, from: Data(text.utf8))
        return try await RecordedPhone(cluster, "person\(number)@example.com", state)
    }
}

/// A phone with a saved state.
struct RecordedPhone {
    let phone: IntegrationPhone
    let realm: RealmPath
    var device: DeviceState

    init(_ cluster: LocalCluster, _ email: String, _ device: DeviceState) async throws {
        phone = try await IntegrationPhone(cluster, email)
        realm = try RealmPath.user(email)
        self.device = device
    }

    /// Resumes from the cursors.
    ///
    /// - Returns: The lines of the stream.
    @discardableResult
    mutating func sync() async throws -> [SyncLine] {
        let response = try await phone.client.send(
            Request(
                "POST", phone.cluster.gatewayURL + "/v1/sync", headers: phone.headers,
                body: device.syncRequest(isLive: false)))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let lines = try response.body.split(separator: UInt8(ascii: "\n")).compactMap { try SyncLine.read(Array($0)) }
        for line in lines { _ = device.take(line) }
        return lines
    }

    /// Sends the queue.
    ///
    /// - Returns: The results, by the mutations' numbers.
    mutating func send() async throws -> [Int64: MutationOutcome] {
        var outcomes: [Int64: MutationOutcome] = [:]
        while let request = device.nextRequest() {
            let response = try await phone.client.send(
                Request(
                    "POST", phone.cluster.gatewayURL + "/v1/mutations", headers: phone.headers, body: request.body))
            let read = try #require(try QueueResponse.read(status: response.status, body: response.body))
            for item in device.take(read, to: request, newClientID: UUID()).answers {
                outcomes[item.sequence] = item.outcome
            }
        }
        return outcomes
    }

    mutating func enqueue(_ mutation: Mutation) throws { _ = try device.enqueue(mutation, in: realm) }

    /// The fields of an object, in all realms that have it.
    func objects(_ kind: Kind, _ id: UUID? = nil) throws -> [[String: Any]] {
        try device.copy.objects(of: kind).filter { id == nil || $0.id == id }.compactMap {
            try JSONSerialization.jsonObject(with: Data($0.object.fields)) as? [String: Any]
        }
    }
}
