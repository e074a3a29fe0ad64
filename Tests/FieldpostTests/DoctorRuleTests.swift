import Essentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import Fieldpost
@testable import Kafka

/// Rules for faults that cannot be injected into the test servers.
@Suite(.ownThreads) struct DoctorRuleTests {
    private static let healthy = DatabaseFacts(
        versionNumber: 150_018, version: "15.18", encoding: "UTF8", isSynchronous: true, isDurable: true,
        connectionsMax: 200, connectionsReserved: 3, connectionsUsed: 20, isReadOnly: false, user: "fieldpost",
        clockAhead: .zero, schema: Schema.version, isUnchanged: true, unreadable: [], unwritable: [],
        archive: DatabaseFacts.Archive(wait: .seconds(40)))

    private func database(_ change: (inout DatabaseFacts) -> Void, needed: Int? = 60) -> [DoctorFinding] {
        var facts = Self.healthy
        change(&facts)
        return DatabaseRules.findings(facts, connectionsNeeded: needed).filter { $0.state != .good }
    }

    @Test func databaseFactsDetermineFindings() {
        #expect(database { _ in }.isEmpty)
        #expect(database { $0.versionNumber = 140_011 }.map(\.check) == ["PostgreSQL: version"])
        #expect(database { $0.isDurable = false }.map(\.check) == ["PostgreSQL: durability"])
        #expect(database { $0.connectionsMax = 50 }.first?.state == .failure)
        #expect(database { $0.connectionsUsed = 170 }.first?.state == .warning)
        #expect(database { $0.unwritable = ["store.object"] }.first?.state == .warning)
        #expect(database { $0.clockAhead = .seconds(-3) }.first?.state == .warning)
        #expect(database { $0.deadKeys = 2 }.map(\.seen) == ["2 need manual action"])
        #expect(database { $0.archive = nil }.map(\.state) == [.warning])
        let seen = "files wait; the last was archived 15m 01s ago"
        #expect(database { $0.archive?.wait = .seconds(901) }.map(\.seen) == [seen])
        #expect(database { $0.archive?.hasTimeout = false }.map(\.state) == [.warning])
        #expect(database { $0.archive?.isFailing = true }.map(\.state) == [.failure])
        #expect(database { $0.clockAhead = .seconds(40) }.first?.state == .failure)
    }

    private func broker(
        brokers: Int = 3, copies: Int32 = 3, topic: [String: String] = [:], settings: [String: String]? = nil,
        groups: [ConsumerGroup]? = nil, committed: Set<String> = [], refused: [String: KafkaError] = [:]
    ) -> BrokerFacts {
        let names = Topics.all.map(\.name)
        let metadata = ClusterMetadata(
            topics: Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, Int32($0.partitions)) }),
            leaderless: [],
            brokers: (0..<Int32(brokers)).map { ClusterMetadata.Broker(id: $0, host: "broker", port: 9092) },
            replicas: Dictionary(uniqueKeysWithValues: names.map { ($0, copies) }))
        return BrokerFacts(
            metadata: metadata,
            topicSettings: Dictionary(uniqueKeysWithValues: names.map { ($0, .success(topic)) }),
            brokerSettings: settings,
            groups: groups.map { Dictionary(uniqueKeysWithValues: $0.map { ($0.name, $0) }) },
            committedGroups: committed, refusedGroups: refused)
    }

    private static func group(_ name: String, members count: Int, state: String = "Stable") -> ConsumerGroup {
        ConsumerGroup(name: name, state: state, memberIDs: (0..<count).map(String.init))
    }

    private func entryTopic(_ facts: BrokerFacts) -> DoctorFinding {
        TopicFindings.findings([Topics.entry], facts)[0]
    }

    @Test(arguments: [
        ("min.insync.replicas", "2", DoctorFinding.State.good), ("min.insync.replicas", "1", .warning),
        ("min.insync.replicas", "3", .warning), ("min.insync.replicas", "4", .failure),
        ("cleanup.policy", "compact,delete", .failure), ("cleanup.policy", "delete", .good),
        ("retention.ms", "3600000", .warning), ("retention.ms", "-1", .good), ("max.message.bytes", "100000", .failure),
    ]) func topicSettingsDetermineFinding(name: String, value: String, state: DoctorFinding.State) {
        let finding = entryTopic(broker(topic: [name: value]))
        #expect(finding.state == state)
        #expect(finding.state == .good || finding.remedy?.isEmpty == false)
    }

    @Test func singleInSyncReplicaOfTwoIsAccepted() {
        #expect(entryTopic(broker(copies: 2, topic: ["min.insync.replicas": "1"])).state == .good)
        #expect(entryTopic(broker(copies: 2, topic: ["min.insync.replicas": "2"])).state == .warning)
    }

    @Test func singleReplicaIsReportedOnMultipleBrokers() {
        #expect(entryTopic(broker(copies: 1)).state == .warning)
        #expect(entryTopic(broker(brokers: 1, copies: 1)).state == .good)
    }

    @Test func automaticTopicsAndIdleGroupsAreReported() {
        let names = Self.groupNames
        var groups = names.map { Self.group($0, members: 2) }
        let well = BrokerCheck.findings(broker(settings: ["auto.create.topics.enable": "false"], groups: groups))
        #expect(well.allSatisfy { $0.state == .good })
        groups[0] = Self.group(names[0], members: 0, state: "Empty")
        // A group that never ran is not listed, and has committed nothing.
        groups.removeLast()
        let findings = BrokerCheck.findings(broker(settings: ["auto.create.topics.enable": "true"], groups: groups))
        let seen = findings.filter { $0.state == .warning }.map(\.check)
        let idle = [names[0], names[names.count - 1]].map { "Kafka: group \($0)" }
        #expect(seen == ["Kafka: auto.create.topics.enable"] + idle)
    }

    private static let groupNames = Services.all.filter { !$0.topics.isEmpty }.map(\.name)

    /// Brokers list only groups that the client may describe. A group that is not listed or described may have members.
    @Test func unauthorizedGroupsAreNotReportedAsIdle() {
        let names = Self.groupNames
        let denied = KafkaError(
            code: 30, name: "GROUP_AUTHORIZATION_FAILED", message: "not authorized", isFatal: false,
            isRetriable: false)
        func findings(_ facts: BrokerFacts) -> [DoctorFinding] { BrokerCheck.findings(facts) }

        let all = Dictionary(uniqueKeysWithValues: names.map { ($0, denied) })
        let refused = findings(broker(groups: [], refused: all))
        #expect(!refused.contains { $0.seen.contains("no members") })
        #expect(refused.count { $0.remedy == "grant this client access to the consumer group" } == names.count)

        var hidden = Self.group(names[0], members: 0, state: "")
        hidden.failure = denied
        let others = names.dropFirst(3).map { Self.group($0, members: 1) }
        let some = findings(
            broker(
                groups: [hidden, Self.group(names[1], members: 0, state: "Dead")] + others, committed: Set(names)))
        #expect(!some.contains { $0.seen.contains("no members") }, "\(some)")
        func seen(_ name: String) -> DoctorFinding? { some.first { $0.check == "Kafka: group \(name)" } }
        #expect(seen(names[0])?.state == .failure)
        #expect(seen(names[1])?.seen == "members unknown (new consumer protocol)")
        #expect(seen(names[2])?.seen == "members unknown (brokers do not list the group)")
    }

    @Test func addressesAreCheckedOncePerServer() {
        let origins = AddressCheck.origins([
            "https://a.example/x", "https://a.example/y", "http://a.example", "", "ftp://a.example", "https:///x",
        ])
        #expect(origins == ["https://a.example", "http://a.example"])
        let now = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)
        func plain(_ origin: String) -> DoctorFinding.State? {
            AddressCheck.findings(origin, end: nil, date: nil, before: now, after: now).first {
                $0.check.hasSuffix("certificate")
            }?.state
        }
        #expect(plain("http://127.0.0.1:8080") == nil)
        #expect(plain("http://127.0.0.1.example") == .warning)
    }
}
