import Kafka
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct LagTests {
    @Test func lagIsCountedFromCommittedOffset() async throws {
        let counts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: counts) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for number in 0..<10 as Range<UInt8> {
                try producer.send(Topics.realm.name, key: [1], value: [number])
            }
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let before = try lag(cluster)
            #expect(before.count == 1)
            #expect(before[0]["lag"] as? Int == 10)
            #expect(before[0]["committed"] == nil)
            #expect(try #require(before[0]["oldestAgeMs"] as? Int) < 3_600_000)

            try finish(4, cluster)
            let after = try lag(cluster)
            #expect(after.map { $0["lag"] as? Int } == [6])
            #expect(after.map { $0["committed"] as? Int } == [4])
            #expect(after.map { $0["end"] as? Int } == [10])
            #expect(after[0]["oldestAgeMs"] is Int)

            try finish(6, cluster)
            let end = try lag(cluster)
            #expect(end.isEmpty)
            func table(_ options: String...) throws -> [Substring] {
                let result = try fieldpost(
                    ["lag", "--topic", Topics.realm.name, "--brokers", cluster.address] + options)
                return result.output.split(separator: "\n")
            }
            #expect(try table("--partitions").count == Topics.realm.partitions + 1)
            let sums = try table()
            #expect(sums.count == Topics.realm.consumers.count + 1)
            #expect(sums[1].hasPrefix(Topics.realm.name) && sums[1].contains("0/\(Topics.realm.partitions)"), "\(sums)")
            let cut = try table("--partitions", "--limit", "2")
            let hidden = "\(Topics.realm.partitions - 2) more rows hidden: --limit, --group, --topic"
            #expect(cut.count == 4 && cut[3] == hidden, "\(cut)")
        }
    }

    @Test func groupOutsideCatalogueIsReported() async throws {
        try await withMockCluster(topics: [Topics.realm.name: Topics.realm.partitions, "orders": 2]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for key in 0..<20 as Range<UInt8> { try producer.send("orders", key: [key], value: [key]) }
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "billing", [TopicPartition(topic: "orders", partition: 1): 2])
            func lag(_ options: String...) throws -> CommandResult {
                try fieldpost(["lag", "--json", "--brokers", cluster.address] + options)
            }
            let rows = try lag("--group", "billing").rows()
            #expect(rows.map { $0["topic"] as? String } == ["orders"])
            #expect(rows.map { $0["partition"] as? Int } == [1] && rows.map { $0["committed"] as? Int } == [2])
            let (end, count) = (try #require(rows[0]["end"] as? Int), rows[0]["lag"] as? Int)
            #expect(end > 2 && count == end - 2)
            #expect(try lag("--group", "billing", "--topic", "orders").rows().count == 1)
            #expect(try lag("--group", "billing", "--topic", Topics.realm.name).rows().isEmpty)

            let unknown = try lag("--group", "biling")
            #expect(unknown.status == 1 && unknown.errors.contains("neither members nor committed offsets"))
            #expect(unknown.errors.contains("entry-submitter"), "\(unknown.errors)")
        }
    }

    /// The mock cluster retains 5 MB of a partition.
    @Test func expiredMessagesAreCounted() async throws {
        try await withMockCluster(topics: [Topics.realm.name: Topics.realm.partitions]) { cluster in
            var producer = try Producer(brokers: cluster.address, properties: ["compression.codec": "none"])
            let value = [UInt8](repeating: 0, count: 60_000)
            for _ in 0..<120 { try producer.send(Topics.realm.name, key: [1], value: value) }
            let isFlushed = producer.flush(waitMax: .seconds(30))
            #expect(isFlushed)
            let rows = try lag(cluster)
            #expect(rows.count == 1)
            let (expired, lag) = (try #require(rows[0]["expired"] as? Int), try #require(rows[0]["lag"] as? Int))
            #expect(expired > 0 && expired + lag == 120)
        }
    }

    @Test func brokerRejectionIsReported() async throws {
        try await withOwnThread {
            let broker = try RefusingBroker()
            for command in [["topics", "list"], ["topics", "apply"], ["lag", "--topic", Topics.realm.name]] {
                let result = try fieldpost(
                    command,
                    environment: [
                        "FIELDPOST_KAFKA_BROKERS": broker.address,
                        "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
                        "FIELDPOST_KAFKA_SASL_MECHANISM": "PLAIN", "FIELDPOST_KAFKA_SASL_USERNAME": "fieldpost",
                        "FIELDPOST_KAFKA_SASL_PASSWORD": "wrong",
                    ])
                #expect(result.status == 1)
                #expect(result.errors.contains("_AUTHENTICATION"), "\(result.errors)")
                #expect(result.errors.contains("kafka.sasl.password"), "\(result.errors)")
            }
        }
    }

    @Test func unavailableBrokerMakesLagUnknown() throws {
        let result = try fieldpost("lag", "--topic", Topics.realm.name, "--brokers", "127.0.0.1:1")
        #expect(result.status == 1)
        #expect(result.errors.contains("the broker does not respond"))
        #expect(result.output.contains("unknown"))
    }

    private func lag(_ cluster: MockCluster) throws -> [[String: Any]] {
        let result = try fieldpost(
            "lag", "--json", "--behind", "--topic", Topics.realm.name,
            environment: ["FIELDPOST_KAFKA_BROKERS": cluster.address])
        #expect(result.status == 0, "\(result.errors)")
        return try result.rows()
    }

    /// Reads and commits messages as the topic's group.
    private func finish(_ count: Int, _ cluster: MockCluster) throws {
        var consumer = try Consumer(
            brokers: cluster.address, group: Topics.realm.consumers[0], topics: [Topics.realm.name],
            properties: ["session.timeout.ms": "4000", "heartbeat.interval.ms": "100"])
        let end = ContinuousClock.now + patienceMax
        var left = count
        while left > 0 {
            try #require(ContinuousClock.now < end)
            let messages = try consumer.nextBatch(countMax: left, waitMax: .milliseconds(50))
            consumer.finish(messages)
            left -= messages.count
        }
        consumer.close()
    }
}

@Suite(.ownThreads) struct TopicsTests {
    @Test func topicsListComparesCatalogueWithBroker() async throws {
        let counts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: counts) { cluster in
            let list = try fieldpost("topics", "list", "--json", "--brokers", cluster.address)
            #expect(try list.rows().map { $0["topic"] as? String } == Topics.all.map(\.name))
            #expect(try list.rows().allSatisfy { $0["state"] as? String == "ok" })
            let entries = try list.rows().first { $0["topic"] as? String == Topics.entry.name }
            let realms = entries?["realms"] as? [String: [String]]
            #expect(realms == ["TimeEntry": ["/users/{e-mail}"], "SeenRecord": ["services' own"]])
            // The mock cluster cannot create topics, which is not needed here.
            let apply = try fieldpost("topics", "apply", "--brokers", cluster.address)
            #expect(apply.status == 0, "\(apply.errors)")
        }
    }

    @Test func missingAndScaledTopicsAreListed() async throws {
        try await withMockCluster(topics: [Topics.realm.name: Topics.realm.partitions + 1]) { cluster in
            let list = try fieldpost("topics", "list", "--json", "--brokers", cluster.address)
            let missing = [String](repeating: "missing", count: Topics.all.count - 1)
            #expect(try list.rows().map { $0["state"] as? String } == ["scaled"] + missing)
            let apply = try fieldpost("topics", "apply", "--brokers", cluster.address)
            #expect(apply.status == 1)
            #expect(apply.errors.contains("not supported"))
        }
    }

    @Test func topicIsDescribedAndChecked() async throws {
        let counts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
        try await withMockCluster(topics: counts) { cluster in
            let realm = Topics.realm.name
            var producer = try Producer(brokers: cluster.address)
            try producer.send(realm, key: [1], value: [1])
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let text = try fieldpost("topics", "describe", realm, "--brokers", cluster.address)
            #expect(text.status == 0, "\(text.errors)")
            #expect(text.output.contains("group realm-initializer: members unknown, lag 1"), "\(text.output)")
            #expect(text.output.contains("LAG OF REALM-INITIALIZER"))
            let check = try fieldpost("topics", "check", "--json", "--brokers", cluster.address)
            #expect(check.status == 0)
            #expect(try check.rows().count == Topics.all.count)
            cluster.lead(realm, 0, false)
            let wrong = try fieldpost("topics", "check", "--brokers", cluster.address)
            #expect(wrong.status == 1)
            #expect(wrong.output.contains("without a leader, such as 0"))
        }
        let unknown = try fieldpost("topics", "describe", "entries", "--brokers", "127.0.0.1:1")
        #expect(unknown.status == 2 && unknown.errors.contains("no topic entries"))
    }

    /// All checks but the change itself, which the mock cluster does not support.
    @Test func topicIsScaledUpOnly() async throws {
        let realm = Topics.realm
        try await withMockCluster(topics: [realm.name: realm.partitions + 2]) { cluster in
            func scale(_ count: Int, _ more: String...) throws -> CommandResult {
                try fieldpost(
                    ["topics", "scale", realm.name, "--partitions", "\(count)", "--brokers", cluster.address] + more)
            }
            let dry = try scale(realm.partitions + 6, "--dry-run")
            #expect(dry.status == 0, "\(dry.errors)")
            #expect(dry.output.contains("\(realm.partitions + 2) partitions would become \(realm.partitions + 6)"))
            #expect(dry.output.contains("nothing was changed"))
            #expect(try scale(realm.partitions + 2).output.contains("already"))
            let fewer = try scale(realm.partitions + 1)
            #expect(fewer.status == 1)
            #expect(fewer.errors.contains("topics republish \(realm.name)"))
            let tooFew = try scale(realm.partitions - 1)
            #expect(tooFew.status == 2 && tooFew.errors.contains("at least \(realm.partitions)"))
            let refused = try scale(realm.partitions + 6)
            #expect(refused.status == 1)
            #expect(refused.errors.contains("not supported"))
        }
    }

    @Test func tooFewPartitionsSuggestScaling() async throws {
        try await withMockCluster(topics: [Topics.entry.name: Topics.entry.partitions - 1]) { cluster in
            let list = try fieldpost("topics", "list", "--json", "--brokers", cluster.address)
            #expect(try list.rows().contains { $0["state"] as? String == "too few partitions" })
            let check = try fieldpost("topics", "check", "--brokers", cluster.address)
            #expect(check.status == 1)
            #expect(check.output.contains("fieldpost topics scale \(Topics.entry.name)"))
        }
    }
}
