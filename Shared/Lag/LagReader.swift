import Essentials
package import Kafka

/// Asks brokers how far groups are.
///
/// A look costs one request for what there is, one or two for the groups, one for each group's offsets, and two for
/// each broker that leads partitions: their number does not grow with the number of partitions.
package struct LagReader: ~Copyable {
    private let admin: Admin
    private let brokers: String
    private let properties: [String: String]
    private let waitMax: Duration

    /// - Throws: For a property that librdkafka does not know. Brokers that do not answer are no error here.
    package init(brokers: String, properties: [String: String], waitMax: Duration) throws(KafkaError) {
        admin = try Admin(brokers: brokers, properties: properties, waitMax: waitMax)
        (self.brokers, self.properties, self.waitMax) = (brokers, properties, waitMax)
    }

    /// - Parameters:
    ///   - known: Groups with the topics that they read, with a lag on all partitions of these from the first on.
    ///   - others: Whether groups are looked for that are not among them, with the partitions they committed for.
    /// - Throws: When no broker answers. What else is not known is said in the look.
    package borrowing func look(at known: [String: [String]], others: Bool) throws(KafkaError) -> LagLook {
        let metadata = try admin.metadata()
        var problems: [String: KafkaError] = [:]
        var memberCounts: [String: Int]?
        do {
            memberCounts = try Dictionary(admin.groups().map { ($0.name, $0.members.count) }) { max($0, $1) }
        } catch {
            // The mock cluster does not know the request.
            if !error.isNotSupported { problems["groups"] = error }
        }
        var questions: [String: [TopicPartition]?] = [:]
        for (group, topics) in known { questions[group] = Self.partitions(of: topics, metadata) }
        if others {
            for group in memberCounts?.keys ?? [:].keys where questions[group] == nil {
                questions[group] = .some(nil)
            }
        }
        // A group that reads topics which are not there has nothing to be asked about.
        questions = questions.filter { $0.value?.isEmpty != true }
        // The groups' offsets first: read afterwards they could lie above the ends.
        var groups: [LagLook.Group] = []
        for (group, answer) in try admin.committed(questions) {
            let memberCount = memberCounts.map { $0[group] ?? 0 }
            switch answer {
            case .success(let committed):
                let asked = (questions[group] ?? nil) ?? Array(committed.keys)
                let offsets = asked.map { ($0, committed[$0]) }
                groups.append(
                    LagLook.Group(
                        name: group, offsets: Dictionary(offsets) { first, _ in first }, memberCount: memberCount))
            case .failure(let error): problems[group] = error
            }
        }
        let partitions = Set(groups.flatMap(\.offsets.keys)).filter {
            $0.partition < metadata.topics[$0.topic] ?? 0 && !metadata.leaderless.contains($0)
        }
        let firsts = try admin.offsets(at: .first, of: partitions)
        let ends = try admin.offsets(at: .end, of: partitions)
        var available: [TopicPartition: Range<Int64>] = [:]
        for (partition, end) in ends {
            guard let first = firsts[partition] else { continue }
            available[partition] = min(first, end)..<end
        }
        return LagLook(
            milliseconds: Timestamp.now().millisecondsSinceEpoch, available: available,
            groups: groups.sorted { $0.name < $1.name }, problems: problems)
    }

    /// When messages were written; see ``WrittenTimes``.
    package borrowing func writtenTimes(
        of offsets: [TopicPartition: Int64]
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        try WrittenTimes.load(offsets, brokers: brokers, properties: properties, waitMax: waitMax)
    }

    private static func partitions(of topics: [String], _ metadata: ClusterMetadata) -> [TopicPartition] {
        topics.flatMap { topic in
            (0..<(metadata.topics[topic] ?? 0)).map { TopicPartition(topic: topic, partition: $0) }
        }
    }
}
