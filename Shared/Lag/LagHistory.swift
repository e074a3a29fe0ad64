package import Kafka

/// What is known of groups by several looks: how old what waits is, and how each of them fares.
package struct LagHistory: Sendable {
    /// So many signs of life are judged by.
    package static let commitCountMax = 10

    private struct Place: Hashable {
        let group: String
        let partition: TopicPartition
    }

    /// The commits of a group on a partition, and when the message was written that it has to read next.
    private struct Course {
        var commits: [CommitSeen] = []
        var lookCount = 0
        var nextWritten: (offset: Int64, milliseconds: Int64)?

        mutating func take(_ beginning: Beginning, hasMembers: Bool, at time: Int64) {
            lookCount = min(lookCount + 1, LagHistory.commitCountMax)
            if nextWritten?.offset != beginning.start { nextWritten = nil }
            guard let committed = beginning.committed else {
                // What it had committed was of content that the broker has lost.
                commits = []
                return
            }
            // Members who have nothing to commit commit nothing: that they are there is a sign as good.
            guard hasMembers || commits.last?.offset != committed else { return }
            commits.append(
                CommitSeen(offset: committed, milliseconds: time, lag: beginning.end - beginning.start))
            if commits.count > LagHistory.commitCountMax { commits.removeFirst() }
        }
    }

    private var growths: [TopicPartition: PartitionGrowth] = [:]
    private var courses: [Place: Course] = [:]
    private var latest: LagLook?

    package init() {}

    /// Takes in a look, later than those before it. What it does not tell of is forgotten, unless it could not tell
    /// all.
    package mutating func take(_ look: LagLook) {
        if look.problems.isEmpty {
            growths = growths.filter { look.available[$0.key] != nil }
            let places = look.groups.flatMap { group in
                group.offsets.keys.map { Place(group: group.name, partition: $0) }
            }
            let there = Set(places)
            courses = courses.filter { there.contains($0.key) }
        }
        for (partition, available) in look.available {
            growths[partition, default: PartitionGrowth()].take(available.upperBound, at: look.milliseconds)
        }
        for group in look.groups {
            for (partition, committed) in group.offsets {
                guard let available = look.available[partition] else { continue }
                let beginning = Beginning(partition: partition, committed: committed, available: available)
                courses[Place(group: group.name, partition: partition), default: Course()].take(
                    beginning, hasMembers: group.memberCount.map { $0 > 0 } ?? false, at: look.milliseconds)
            }
        }
        latest = look
    }

    /// The messages that a group has to read next, where it is not known when they were written.
    package func unknownAges(of group: String) -> [TopicPartition: Int64] {
        var unknown: [TopicPartition: Int64] = [:]
        for beginning in beginnings(of: group) where beginning.start < beginning.end {
            let course = courses[Place(group: group, partition: beginning.partition)]
            if course?.nextWritten == nil { unknown[beginning.partition] = beginning.start }
        }
        return unknown
    }

    /// Takes in when messages were written that ``unknownAges(of:)`` named, in milliseconds since 1970.
    package mutating func learn(_ times: [TopicPartition: Int64], of group: String) {
        for beginning in beginnings(of: group) {
            guard let time = times[beginning.partition], time >= 0 else { continue }
            courses[Place(group: group, partition: beginning.partition)]?.nextWritten = (beginning.start, time)
        }
    }

    /// How far each group is behind on each partition, by the latest look; in the order of their names.
    package var lags: [PartitionLag] {
        guard let latest else { return [] }
        return latest.groups.flatMap { group in
            beginnings(of: group.name).map { beginning in
                let course = courses[Place(group: group.name, partition: beginning.partition)] ?? Course()
                return PartitionLag(
                    group: group.name, partition: beginning.partition, beginning: beginning,
                    isFollowed: isFollowed(group, course), age: age(of: beginning, course, latest.milliseconds),
                    status: status(of: beginning, group, course, latest.milliseconds))
            }
        }
    }

    private func beginnings(of name: String) -> [Beginning] {
        guard let latest, let group = latest.groups.first(where: { $0.name == name }) else { return [] }
        return group.offsets.compactMap { partition, committed in
            latest.available[partition].map {
                Beginning(partition: partition, committed: committed, available: $0)
            }
        }.sorted { ($0.partition.topic, $0.partition.partition) < ($1.partition.topic, $1.partition.partition) }
    }

    private func age(of beginning: Beginning, _ course: Course, _ now: Int64) -> PartitionLag.Age? {
        guard beginning.start < beginning.end else { return nil }
        func seconds(since time: Int64) -> Double { Double(max(0, now - time)) / 1_000 }
        if let next = course.nextWritten { return .exact(seconds: seconds(since: next.milliseconds)) }
        switch growths[beginning.partition]?.written(beginning.start) {
        case .about(let time): return .estimated(seconds: seconds(since: time))
        case .before(let time): return .atLeast(seconds: seconds(since: time))
        case nil: return nil
        }
    }

    /// Whether somebody reads there: of a group that is over, or was never begun, nothing is to be expected.
    private func isFollowed(_ group: LagLook.Group, _ course: Course) -> Bool {
        if let count = group.memberCount, count > 0 { return true }
        return group.isKnown ? !course.commits.isEmpty : course.commits.count > 1
    }

    private func status(
        of beginning: Beginning, _ group: LagLook.Group, _ course: Course, _ now: Int64
    ) -> LagStatus? {
        // Whoever has only begun to look has seen no silence yet.
        guard course.lookCount >= Self.commitCountMax, isFollowed(group, course) else { return nil }
        let lag = beginning.end - beginning.start
        // It is there, and has not finished the first of what it has to read.
        if course.commits.isEmpty { return lag > 0 ? .stall : .ok }
        return LagStatusRule.status(
            commits: course.commits, recentEnds: growths[beginning.partition]?.recentEnds ?? [], lag: lag, now: now)
    }
}
