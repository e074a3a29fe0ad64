package import Kafka

/// Derives ages, rates and statuses of groups from consecutive snapshots.
package struct LagHistory: Sendable {
    /// Number of commit samples that determine a status.
    package static let commitCountMax = 10

    /// A group with its partitions.
    private struct GroupPartitions {
        let group: LagSnapshot.Group
        /// Ordered by topic and partition.
        let beginnings: [Beginning]
    }

    private var growths: [TopicPartition: PartitionGrowth] = [:]
    /// By group.
    private var progressByGroup: [String: [TopicPartition: PartitionProgress]] = [:]
    private var memberships: [String: GroupMembership] = [:]
    /// The latest snapshot, ordered by group.
    private var latest: [GroupPartitions] = []
    private var milliseconds: Int64 = 0
    /// Number of partitions of each topic in the first snapshot, or a later complete one; `nil` if unknown.
    private var partitionCounts: [String: Int32]?

    package init() {}

    /// Time, in milliseconds, after which data is dropped that incomplete snapshots do not contain.
    private static let staleMax: Int64 = 3_600_000

    /// Processes a snapshot, later than the previous ones. Data that it does not contain is dropped: immediately if the
    /// snapshot is complete, otherwise after an hour.
    package mutating func take(_ look: LagSnapshot) {
        addCreatedPartitions(of: look)
        milliseconds = look.milliseconds
        let oldest = look.problems.isEmpty ? .max : milliseconds - Self.staleMax
        growths = growths.filter { look.available[$0.key] != nil || $0.value.milliseconds >= oldest }
        let groups = Dictionary(look.groups.map { ($0.name, $0) }) { first, _ in first }
        progressByGroup = progressByGroup.filter { group, partitions in
            groups[group] != nil || partitions.values.contains { $0.milliseconds >= oldest }
        }
        memberships = memberships.filter { groups[$0.key] != nil || progressByGroup[$0.key] != nil }
        for (partition, available) in look.available {
            growths[partition, default: PartitionGrowth()].take(available, at: look.milliseconds)
        }
        let order = Self.order(of: look.available.keys)
        latest = look.groups.map { group in
            GroupPartitions(group: group, beginnings: Self.beginnings(of: group, in: look, order))
        }
        for entry in latest {
            memberships[entry.group.name, default: GroupMembership()].update(entry.group)
            take(entry, since: oldest)
        }
    }

    /// Records that partitions which did not exist before were empty in the previous snapshot: all of their messages
    /// were written since. A known partition is not new: it may have been missing from incomplete metadata.
    private mutating func addCreatedPartitions(of look: LagSnapshot) {
        defer { if partitionCounts == nil || look.problems.isEmpty { partitionCounts = look.partitionCounts } }
        guard let counts = partitionCounts else { return }
        let created = look.available.filter { partition, available in
            partition.partition >= counts[partition.topic] ?? 0 && available.lowerBound == 0
                && growths[partition] == nil
        }
        guard !created.isEmpty else { return }
        for partition in created.keys { growths[partition, default: PartitionGrowth()].take(0..<0, at: milliseconds) }
        for group in look.groups {
            for partition in group.offsets.keys where created[partition] != nil {
                progressByGroup[group.name, default: [:]][partition, default: PartitionProgress()].take(
                    Beginning(partition: partition, committed: nil, available: 0..<0), hasMembers: false,
                    at: milliseconds)
            }
        }
    }

    /// Processes one group. Partitions that the snapshot does not contain are dropped, unless they were sampled since
    /// `oldest`.
    private mutating func take(_ entry: GroupPartitions, since oldest: Int64) {
        let hasMembers = entry.group.memberCount.map { $0 > 0 } ?? false
        // Removed from the dictionary, so that it is modified in place.
        var byPartition = progressByGroup.removeValue(forKey: entry.group.name) ?? [:]
        if byPartition.count > entry.beginnings.count {
            byPartition = byPartition.filter { entry.group.offsets[$0.key] != nil || $0.value.milliseconds >= oldest }
        }
        byPartition.reserveCapacity(entry.beginnings.count)
        for beginning in entry.beginnings {
            byPartition[beginning.partition, default: PartitionProgress()].take(
                beginning, hasMembers: hasMembers, at: milliseconds)
            byPartition[beginning.partition]?.estimate(beginning, by: growths[beginning.partition])
        }
        progressByGroup[entry.group.name] = byPartition
    }

    /// Rank of each partition, so that names are compared once and not for every group.
    private static func order(of partitions: some Sequence<TopicPartition>) -> [TopicPartition: Int] {
        let sorted = partitions.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
        return Dictionary(uniqueKeysWithValues: zip(sorted, sorted.indices))
    }

    private static func beginnings(
        of group: LagSnapshot.Group, in look: LagSnapshot, _ order: [TopicPartition: Int]
    ) -> [Beginning] {
        var ranked: [(rank: Int, beginning: Beginning)] = []
        ranked.reserveCapacity(group.offsets.count)
        for (partition, committed) in group.offsets {
            guard let rank = order[partition], let available = look.available[partition] else { continue }
            ranked.append((rank, Beginning(partition: partition, committed: committed, available: available)))
        }
        return ranked.sorted { $0.rank < $1.rank }.map(\.beginning)
    }

    // MARK: Ages

    /// Offsets of a group's next messages whose write time is unknown.
    package func offsetsOfUnknownAge(of group: String) -> [TopicPartition: Int64] {
        var unknown: [TopicPartition: Int64] = [:]
        for beginning in beginnings(of: group) where beginning.start < beginning.end {
            if progressByGroup[group]?[beginning.partition]?.nextWrittenAt == nil {
                unknown[beginning.partition] = beginning.start
            }
        }
        return unknown
    }

    /// Sets write times of messages that ``offsetsOfUnknownAge(of:)`` returned, in milliseconds since 1970.
    package mutating func learn(_ times: [TopicPartition: Int64], of group: String) {
        for beginning in beginnings(of: group) {
            guard let time = times[beginning.partition], time >= 0 else { continue }
            progressByGroup[group]?[beginning.partition]?.nextWrittenAt = (beginning.start, time)
        }
    }

    private func beginnings(of group: String) -> [Beginning] {
        latest.first { $0.group.name == group }?.beginnings ?? []
    }

    // MARK: Results

    /// Lag of each group on each partition in the latest snapshot, ordered by group, topic and partition.
    package var lags: [PartitionLag] {
        var lags: [PartitionLag] = []
        lags.reserveCapacity(latest.map(\.beginnings.count).reduce(0, +))
        for entry in latest {
            let byPartition = progressByGroup[entry.group.name] ?? [:]
            for beginning in entry.beginnings {
                let progress = byPartition[beginning.partition] ?? PartitionProgress()
                let growth = growths[beginning.partition]
                lags.append(
                    PartitionLag(
                        group: entry.group.name, partition: beginning.partition, beginning: beginning,
                        hasConsumer: hasConsumer(entry.group, progress), age: age(of: beginning, progress),
                        status: status(of: beginning, entry.group, progress, growth),
                        inPerSecond: growth?.pace.perSecond, outPerSecond: progress.pace.perSecond,
                        writtenCount: progress.writtenCount, consumedCount: progress.consumedCount))
            }
        }
        return lags
    }

    /// Number of snapshots in which each group had other members than before, or was about to rebalance; only for
    /// groups whose members the brokers list.
    package var rebalanceCounts: [(group: String, count: Int)] {
        latest.compactMap { entry in
            guard entry.group.memberIDs != nil, let membership = memberships[entry.group.name] else { return nil }
            return (entry.group.name, membership.rebalanceCount)
        }
    }

    private func age(of beginning: Beginning, _ progress: PartitionProgress) -> PartitionLag.Age? {
        guard beginning.start < beginning.end else { return nil }
        func seconds(since time: Int64) -> Double { Double(max(0, milliseconds - time)) / 1_000 }
        if let next = progress.nextWrittenAt { return .exact(seconds: seconds(since: next.milliseconds)) }
        switch progress.nextEstimate?.written {
        case .estimated(let time): return .estimated(seconds: seconds(since: time))
        case .before(let time): return .atLeast(seconds: seconds(since: time))
        case nil: return nil
        }
    }

    /// Whether the group is expected to read the partition: it has members, or had some.
    private func hasConsumer(_ group: LagSnapshot.Group, _ progress: PartitionProgress) -> Bool {
        if let count = group.memberCount, count > 0 { return true }
        if !group.isKnown { return progress.commits.count > 1 }
        // A group that ended before its first commit has left no other sign.
        return !progress.commits.isEmpty || memberships[group.name]?.hasHadMembers == true
    }

    private func status(
        of beginning: Beginning, _ group: LagSnapshot.Group, _ progress: PartitionProgress, _ growth: PartitionGrowth?
    ) -> LagStatus? {
        // With fewer samples, silence cannot be detected.
        guard progress.sampleCount >= Self.commitCountMax, hasConsumer(group, progress) else { return nil }
        let lag = beginning.end - beginning.start
        // The group has not finished its first message.
        if progress.commits.isEmpty {
            if lag == 0 { return .ok }
            return group.memberCount == 0 ? .stop : .stall
        }
        return LagStatusRule.status(
            commits: progress.commits, recentEnds: growth?.recentEnds ?? [], lag: lag, now: milliseconds)
    }
}
