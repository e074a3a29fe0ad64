import Essentials
package import Kafka
import Model

/// Queries brokers for the offsets of groups.
///
/// A snapshot needs one metadata request, one or two requests per broker for the groups, one per group for its offsets,
/// and two per broker that leads partitions. The number does not grow with the number of partitions.
package struct LagReader: ~Copyable {
    private var admin: Admin
    private let times: MessageTimestamps
    private let waitMax: Duration

    /// - Throws: For a property that librdkafka rejects. Unavailable brokers are no error here.
    package init(brokers: String, properties: [String: String], waitMax: Duration) throws(KafkaError) {
        // The end is the next message's offset, also on topics with transactions, since consumers may commit up to
        // there. librdkafka repeats a query to an unresponsive broker until it closes the connection.
        let socketMilliseconds = max(10, Int(waitMax / .milliseconds(1)) * 4 / 5)
        let adminProperties = properties.merging(
            ["isolation.level": "read_uncommitted", "socket.timeout.ms": String(socketMilliseconds)]
        ) { first, _ in first }
        let times = try MessageTimestamps(brokers: brokers, properties: properties)
        let admin = try Admin(brokers: brokers, properties: adminProperties, waitMax: waitMax)
        (self.times, self.waitMax) = (times, waitMax)
        self.admin = admin
    }

    /// - Parameters:
    ///   - known: Groups with the topics that they read. Their lag includes all partitions of these topics.
    ///   - others: Whether to include other groups, with the partitions they have committed offsets for, and all
    ///     partitions of topics of own kinds that are among these.
    ///   - named: Other groups to include, whether or not brokers list them.
    /// - Throws: If no broker responds. Other failures are in the snapshot's `problems`.
    package borrowing func snapshot(
        of known: [String: [String]], others: Bool, named: [String] = []
    ) throws(KafkaError) -> LagSnapshot {
        let metadata = try admin.metadataOfAnyBroker()
        var problems = Self.problems(of: known, metadata)
        let members = members(&problems)
        var queries: [String: [TopicPartition]?] = [:]
        for (group, topics) in known { queries[group] = Self.partitions(of: topics, metadata) }
        let groupNames = named + (others ? members.map { Array($0.ids.keys) } ?? [] : [])
        for group in groupNames where queries[group] == nil { queries[group] = .some(nil) }
        // A group without partitions cannot be queried.
        queries = queries.filter { $0.value?.isEmpty != true }
        // Committed offsets first: if queried later, they could exceed the ends.
        let answers = try committed(queries, metadata)
        let groups = answers.compactMap { group, answer -> LagSnapshot.Group? in
            switch answer {
            case .success(let committed):
                let partitions = (queries[group] ?? nil) ?? Self.partitions(of: committed, metadata)
                return Self.group(group, partitions, committed, known, members)
            case .failure: return nil
            }
        }
        for (group, answer) in answers {
            if case .failure(let error) = answer { problems["group \(group)"] = error }
        }
        let available = try available(Set(groups.flatMap(\.offsets.keys)), metadata, &problems)
        return LagSnapshot(
            milliseconds: Timestamp.now().millisecondsSinceEpoch, available: available,
            groups: groups.sorted { $0.name < $1.name }, problems: problems, partitionCounts: metadata.topics)
    }

    private static func group(
        _ name: String, _ partitions: [TopicPartition], _ committed: [TopicPartition: Int64],
        _ known: [String: [String]], _ members: Members?
    ) -> LagSnapshot.Group {
        let ids = members?.ids(of: name, hasCommitted: !committed.isEmpty)
        return LagSnapshot.Group(
            name: name, isKnown: known[name] != nil,
            offsets: Dictionary(partitions.map { ($0, committed[$0]) }) { first, _ in first },
            memberCount: ids?.count, memberIDs: ids, isRebalancing: members?.rebalancing.contains(name) ?? false)
    }

    /// Retention of topics, in seconds. Topics without time-based deletion (compacted only, or unlimited) are absent.
    ///
    /// - Returns: Retentions, and the errors of topics whose settings brokers refuse to return (permission
    ///   DescribeConfigs).
    /// - Throws: If no broker responds, or the brokers do not support the request, as the mock cluster.
    package borrowing func retentions(
        of topics: some Collection<String>
    ) throws(KafkaError) -> (retentions: [String: Double], refused: [String: KafkaError]) {
        var retentions: [String: Double] = [:]
        var refused: [String: KafkaError] = [:]
        for (topic, answer) in try admin.settings(of: Array(topics)) {
            switch answer {
            case .success(let settings): retentions[topic] = RetentionRule.seconds(settings)
            case .failure(let error): refused[topic] = error
            }
        }
        return (retentions, refused)
    }

    /// Write times of messages; see ``MessageTimestamps``.
    package borrowing func writtenTimes(
        of offsets: [TopicPartition: Int64]
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try times.load(offsets, waitMax: waitMax)
    }

    // MARK: Queries

    /// librdkafka before 2.2.1 sends Kafka before 2.4 an empty request for all offsets of a group (librdkafka issue
    /// 4346). If no group seems to have offsets, they are queried by partition.
    borrowing func committed(
        _ queries: [String: [TopicPartition]?], _ metadata: ClusterMetadata
    ) throws(KafkaError) -> [String: Result<[TopicPartition: Int64], KafkaError>] {
        let answers = try admin.committed(queries)
        let ofAll = queries.filter { $0.value == nil }.keys
        let isSupported = ofAll.contains { (try? answers[$0]?.get())?.isEmpty == false }
        if ofAll.isEmpty || isSupported { return answers }
        let partitions = Self.partitions(of: Array(metadata.topics.keys), metadata)
        if partitions.isEmpty { return answers }
        let byPartition = try admin.committed(Dictionary(uniqueKeysWithValues: ofAll.map { ($0, partitions) }))
        return answers.merging(byPartition) { $1 }
    }

    /// Queries the first and end offsets of partitions.
    private borrowing func available(
        _ requested: Set<TopicPartition>, _ metadata: ClusterMetadata, _ problems: inout [String: KafkaError]
    ) throws(KafkaError) -> [TopicPartition: Range<Int64>] {
        // Groups may have committed offsets of deleted partitions.
        let existing = requested.filter { $0.partition < metadata.topics[$0.topic] ?? 0 }
        let leaderless = existing.intersection(metadata.leaderless)
        if let first = leaderless.min(by: { $0.description < $1.description }) {
            problems["leaders"] = KafkaError(timeout: "\(leaderless.count) partitions have no leader, such as \(first)")
        }
        let partitions = existing.subtracting(leaderless)
        let firstOffsets = admin.offsetsByLeader(at: .first, of: partitions, metadata)
        let ends = admin.offsetsByLeader(
            at: .end, of: firstOffsets.offsets.keys, metadata, except: firstOffsets.silent.keys)
        let silent = firstOffsets.silent.merging(ends.silent) { $1 }
        let refused = firstOffsets.refused.merging(ends.refused) { $1 }
        if ends.offsets.isEmpty, let failure = silent.values.first ?? refused.values.first { throw failure }
        for (broker, error) in silent { problems["broker \(broker)"] = error }
        for (topic, error) in refused { problems["topic \(topic)"] = error }
        var available: [TopicPartition: Range<Int64>] = [:]
        for (partition, end) in ends.offsets {
            guard let first = firstOffsets.offsets[partition] else { continue }
            available[partition] = min(first, end)..<end
        }
        if let missing = partitions.first(where: { available[$0] == nil }) {
            let count = partitions.count - available.count
            problems["partitions"] = KafkaError(timeout: "no offsets of \(count) partitions, such as \(missing)")
        }
        return available
    }

    /// Members of groups.
    private struct Members {
        var ids: [String: Set<String>?] = [:]
        var rebalancing: Set<String> = []
        /// All brokers responded: a group that is not listed has no members.
        var isComplete = true

        /// - Parameter hasCommitted: Such a group is listed, unless its coordinator did not respond or hides it.
        func ids(of group: String, hasCommitted: Bool) -> Set<String>? {
            ids[group] ?? (isComplete && !hasCommitted ? [] : nil)
        }
    }

    /// `nil`: the brokers do not support the request, as the mock cluster.
    private borrowing func members(_ problems: inout [String: KafkaError]) -> Members? {
        do {
            let (groups, failure) = try admin.groups()
            if let failure { problems["groups"] = failure }
            var members = Members(isComplete: failure == nil)
            for group in groups {
                if let failure = group.failure { problems["members of \(group.name)"] = failure }
                members.ids[group.name] = group.hasReliableMembers ? Set(group.memberIDs) : .some(nil)
                if group.state.hasSuffix("Rebalance") { members.rebalancing.insert(group.name) }
            }
            return members
        } catch {
            if !error.isNotSupported { problems["groups"] = error }
            return nil
        }
    }

    /// The partitions that a group reads: those of its committed offsets, and all of a topic of own kinds, which its
    /// workers share.
    private static func partitions(
        of committed: [TopicPartition: Int64], _ metadata: ClusterMetadata
    ) -> [TopicPartition] {
        let topics = Set(committed.keys.map(\.topic).filter(Topic.isOwn))
        return Array(Set(committed.keys).union(partitions(of: Array(topics), metadata)))
    }

    private static func partitions(of topics: [String], _ metadata: ClusterMetadata) -> [TopicPartition] {
        topics.flatMap { topic in
            (0..<(metadata.topics[topic] ?? 0)).map { TopicPartition(topic: topic, partition: $0) }
        }
    }

    /// Problems with topics that do not exist.
    private static func problems(of known: [String: [String]], _ metadata: ClusterMetadata) -> [String: KafkaError] {
        let missing = Set(known.values.joined()).filter { metadata.topics[$0] == nil }.sorted()
        return missing.isEmpty ? [:] : ["topics": KafkaError(missing: missing)]
    }
}
