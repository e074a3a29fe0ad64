import Essentials
package import Kafka

/// Asks brokers how far groups are.
///
/// A look costs one request for what there is, one or two to each broker for the groups, one for each group's offsets,
/// and two to each broker that leads partitions: their number does not grow with the number of partitions.
package struct LagReader: ~Copyable {
    private var admin: Admin
    private let times: WrittenTimes
    private let waitMax: Duration

    /// - Throws: For a property that librdkafka does not know. Brokers that do not answer are no error here.
    package init(brokers: String, properties: [String: String], waitMax: Duration) throws(KafkaError) {
        // The end is where the next message goes: of a topic with transactions too, as readers may commit up to there.
        // librdkafka goes on asking a broker that hangs for what any can tell, until it gives up its connection.
        let socketMilliseconds = max(10, Int(waitMax / .milliseconds(1)) * 4 / 5)
        let seesAll = properties.merging(
            ["isolation.level": "read_uncommitted", "socket.timeout.ms": String(socketMilliseconds)]
        ) { first, _ in first }
        let times = try WrittenTimes(brokers: brokers, properties: properties)
        let admin = try Admin(brokers: brokers, properties: seesAll, waitMax: waitMax)
        (self.times, self.waitMax) = (times, waitMax)
        self.admin = admin
    }

    /// - Parameters:
    ///   - known: Groups with the topics that they read, with a lag on all partitions of these from the first on.
    ///   - others: Whether groups are looked for that are not among them, with the partitions they committed for.
    ///   - named: Such groups by their names, whether or not brokers list them.
    /// - Throws: When no broker answers. What else is not known is said in the look.
    package borrowing func look(
        at known: [String: [String]], others: Bool, named: [String] = []
    ) throws(KafkaError) -> LagLook {
        let metadata = try admin.metadataOfAnyBroker()
        var problems = Self.problems(of: known, metadata)
        let members = members(&problems)
        var questions: [String: [TopicPartition]?] = [:]
        for (group, topics) in known { questions[group] = Self.partitions(of: topics, metadata) }
        let found = named + (others ? members.map { Array($0.ids.keys) } ?? [] : [])
        for group in found where questions[group] == nil { questions[group] = .some(nil) }
        // A group that reads topics which are not there has nothing to be asked about.
        questions = questions.filter { $0.value?.isEmpty != true }
        // The groups' offsets first: read afterwards they could lie above the ends.
        let answers = try committed(questions, metadata)
        let groups = answers.compactMap { group, answer -> LagLook.Group? in
            switch answer {
            case .success(let committed):
                Self.group(group, (questions[group] ?? nil) ?? Array(committed.keys), committed, known, members)
            case .failure: nil
            }
        }
        for (group, answer) in answers {
            if case .failure(let error) = answer { problems["group \(group)"] = error }
        }
        let available = try available(Set(groups.flatMap(\.offsets.keys)), metadata, &problems)
        return LagLook(
            milliseconds: Timestamp.now().millisecondsSinceEpoch, available: available,
            groups: groups.sorted { $0.name < $1.name }, problems: problems)
    }

    private static func group(
        _ name: String, _ partitions: [TopicPartition], _ committed: [TopicPartition: Int64],
        _ known: [String: [String]], _ members: Members?
    ) -> LagLook.Group {
        let ids = members?.ids(of: name, hasCommitted: !committed.isEmpty)
        return LagLook.Group(
            name: name, isKnown: known[name] != nil,
            offsets: Dictionary(partitions.map { ($0, committed[$0]) }) { first, _ in first },
            memberCount: ids?.count, memberIDs: ids, isRebalancing: members?.rebalancing.contains(name) ?? false)
    }

    /// librdkafka's log since the last call; at most the latest 1,000 lines.
    package mutating func takeLogs() -> [LogLine] { admin.takeLogs() }

    /// How long topics keep messages, in seconds. A topic is absent that keeps them until newer ones of their keys
    /// come, or for ever.
    ///
    /// - Returns: Those, and of which brokers do not tell, and why: to know it is a right of its own (DescribeConfigs).
    /// - Throws: When no broker answers, or does not know the question, as the mock cluster does not.
    package borrowing func retentions(
        of topics: some Collection<String>
    ) throws(KafkaError) -> (told: [String: Double], refused: [String: KafkaError]) {
        var told: [String: Double] = [:]
        var refused: [String: KafkaError] = [:]
        for (topic, answer) in try admin.settings(of: Array(topics)) {
            switch answer {
            case .success(let settings): told[topic] = RetentionRule.seconds(settings)
            case .failure(let error): refused[topic] = error
            }
        }
        return (told, refused)
    }

    /// When messages were written; see ``WrittenTimes``.
    package borrowing func writtenTimes(
        of offsets: [TopicPartition: Int64]
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try times.load(offsets, waitMax: waitMax)
    }

    // MARK: Questions

    /// librdkafka before 2.2.1 asks Kafka before 2.4 for nothing when it should ask for all that a group has committed
    /// (librdkafka's issue 4346): where no group at all seems to have anything, they are asked by partitions.
    borrowing func committed(
        _ questions: [String: [TopicPartition]?], _ metadata: ClusterMetadata
    ) throws(KafkaError) -> [String: Result<[TopicPartition: Int64], KafkaError>] {
        let answers = try admin.committed(questions)
        let ofAll = questions.filter { $0.value == nil }.keys
        let isUnderstood = ofAll.contains { (try? answers[$0]?.get())?.isEmpty == false }
        if ofAll.isEmpty || isUnderstood { return answers }
        let partitions = Self.partitions(of: Array(metadata.topics.keys), metadata)
        if partitions.isEmpty { return answers }
        let again = try admin.committed(Dictionary(uniqueKeysWithValues: ofAll.map { ($0, partitions) }))
        return answers.merging(again) { $1 }
    }

    /// Where partitions begin and end.
    private borrowing func available(
        _ wanted: Set<TopicPartition>, _ metadata: ClusterMetadata, _ problems: inout [String: KafkaError]
    ) throws(KafkaError) -> [TopicPartition: Range<Int64>] {
        // Others may have committed for what is gone.
        let there = wanted.filter { $0.partition < metadata.topics[$0.topic] ?? 0 }
        let leaderless = there.intersection(metadata.leaderless)
        if let first = leaderless.min(by: { $0.description < $1.description }) {
            problems["leaders"] = KafkaError(timeout: "\(leaderless.count) partitions have no leader, such as \(first)")
        }
        let partitions = there.subtracting(leaderless)
        let firsts = admin.offsetsByLeader(at: .first, of: partitions, metadata)
        let ends = admin.offsetsByLeader(at: .end, of: firsts.offsets.keys, metadata, except: firsts.silent.keys)
        let silent = firsts.silent.merging(ends.silent) { $1 }
        let refused = firsts.refused.merging(ends.refused) { $1 }
        if ends.offsets.isEmpty, let failure = silent.values.first ?? refused.values.first { throw failure }
        for (broker, error) in silent { problems["broker \(broker)"] = error }
        for (topic, error) in refused { problems["topic \(topic)"] = error }
        var available: [TopicPartition: Range<Int64>] = [:]
        for (partition, end) in ends.offsets {
            guard let first = firsts.offsets[partition] else { continue }
            available[partition] = min(first, end)..<end
        }
        if let missing = partitions.first(where: { available[$0] == nil }) {
            let count = partitions.count - available.count
            problems["partitions"] = KafkaError(timeout: "no offsets of \(count) partitions, such as \(missing)")
        }
        return available
    }

    /// Who is in groups.
    private struct Members {
        var ids: [String: Set<String>?] = [:]
        var rebalancing: Set<String> = []
        /// A group that is not named has none: all brokers answered.
        var isWhole = true

        /// - Parameter hasCommitted: Such a group is listed, unless its coordinator did not answer or hides it.
        func ids(of group: String, hasCommitted: Bool) -> Set<String>? {
            ids[group] ?? (isWhole && !hasCommitted ? [] : nil)
        }
    }

    /// `nil`: brokers do not know the question, as the mock cluster does not.
    private borrowing func members(_ problems: inout [String: KafkaError]) -> Members? {
        do {
            let (found, failure) = try admin.groups()
            if let failure { problems["groups"] = failure }
            var members = Members(isWhole: failure == nil)
            for group in found {
                if let failure = group.failure { problems["members of \(group.name)"] = failure }
                members.ids[group.name] = group.hasKnownMembers ? Set(group.members.map(\.id)) : .some(nil)
                if group.state.hasSuffix("Rebalance") { members.rebalancing.insert(group.name) }
            }
            return members
        } catch {
            if !error.isNotSupported { problems["groups"] = error }
            return nil
        }
    }

    private static func partitions(of topics: [String], _ metadata: ClusterMetadata) -> [TopicPartition] {
        topics.flatMap { topic in
            (0..<(metadata.topics[topic] ?? 0)).map { TopicPartition(topic: topic, partition: $0) }
        }
    }

    /// What of the known topics is not there.
    private static func problems(of known: [String: [String]], _ metadata: ClusterMetadata) -> [String: KafkaError] {
        let missing = Set(known.values.joined()).filter { metadata.topics[$0] == nil }.sorted()
        return missing.isEmpty ? [:] : ["topics": KafkaError(missing: missing)]
    }
}
