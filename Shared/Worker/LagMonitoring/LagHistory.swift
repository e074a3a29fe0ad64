package import Kafka

/// What is known of groups by several looks: how old what waits is, how fast it goes, and how each of them fares.
package struct LagHistory: Sendable {
    /// So many signs of life are judged by.
    package static let commitCountMax = 10

    /// What one group has to read, and what is known of it.
    private struct Place {
        let group: LagLook.Group
        /// In the order of their names.
        let beginnings: [Beginning]
    }

    private var growths: [TopicPartition: PartitionGrowth] = [:]
    /// By group.
    private var courses: [String: [TopicPartition: Course]] = [:]
    private var assemblies: [String: Assembly] = [:]
    /// Of the latest look, in the order of the groups' names.
    private var places: [Place] = []
    private var milliseconds: Int64 = 0

    package init() {}

    /// What a look that could not tell all does not tell of is remembered for so long, in milliseconds.
    private static let unseenMax: Int64 = 3_600_000

    /// Takes in a look, later than those before it. What it does not tell of is forgotten: at once when it told all,
    /// and after an hour when something keeps it from that.
    package mutating func take(_ look: LagLook) {
        milliseconds = look.milliseconds
        let oldest = look.problems.isEmpty ? .max : milliseconds - Self.unseenMax
        growths = growths.filter { look.available[$0.key] != nil || $0.value.milliseconds >= oldest }
        let groups = Dictionary(look.groups.map { ($0.name, $0) }) { first, _ in first }
        courses = courses.filter { group, places in
            groups[group] != nil || places.values.contains { $0.milliseconds >= oldest }
        }
        assemblies = assemblies.filter { groups[$0.key] != nil || courses[$0.key] != nil }
        for (partition, available) in look.available {
            growths[partition, default: PartitionGrowth()].take(available.upperBound, at: look.milliseconds)
        }
        let order = Self.order(of: look.available.keys)
        places = look.groups.map { group in
            Place(group: group, beginnings: Self.beginnings(of: group, in: look, order))
        }
        for place in places {
            assemblies[place.group.name, default: Assembly()].take(place.group)
            take(place, since: oldest)
        }
    }

    /// One group's part of a look. What it does not tell of is forgotten, unless it was seen since `oldest`.
    private mutating func take(_ place: Place, since oldest: Int64) {
        let hasMembers = place.group.memberCount.map { $0 > 0 } ?? false
        // Taken out, so that it is changed where it is.
        var known = courses.removeValue(forKey: place.group.name) ?? [:]
        if known.count > place.beginnings.count {
            known = known.filter { place.group.offsets[$0.key] != nil || $0.value.milliseconds >= oldest }
        }
        known.reserveCapacity(place.beginnings.count)
        for beginning in place.beginnings {
            known[beginning.partition, default: Course()].take(beginning, hasMembers: hasMembers, at: milliseconds)
            known[beginning.partition]?.guess(beginning, by: growths[beginning.partition])
        }
        courses[place.group.name] = known
    }

    /// Where each partition stands among all: names are compared once, and not for every group.
    private static func order(of partitions: some Sequence<TopicPartition>) -> [TopicPartition: Int] {
        let sorted = partitions.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
        return Dictionary(uniqueKeysWithValues: zip(sorted, sorted.indices))
    }

    private static func beginnings(
        of group: LagLook.Group, in look: LagLook, _ order: [TopicPartition: Int]
    ) -> [Beginning] {
        var found: [(rank: Int, beginning: Beginning)] = []
        found.reserveCapacity(group.offsets.count)
        for (partition, committed) in group.offsets {
            guard let rank = order[partition], let available = look.available[partition] else { continue }
            found.append((rank, Beginning(partition: partition, committed: committed, available: available)))
        }
        return found.sorted { $0.rank < $1.rank }.map(\.beginning)
    }

    // MARK: Ages

    /// The messages that a group has to read next, where it is not known when they were written.
    package func unknownAges(of group: String) -> [TopicPartition: Int64] {
        var unknown: [TopicPartition: Int64] = [:]
        for beginning in beginnings(of: group) where beginning.start < beginning.end {
            if courses[group]?[beginning.partition]?.nextWritten == nil {
                unknown[beginning.partition] = beginning.start
            }
        }
        return unknown
    }

    /// Takes in when messages were written that ``unknownAges(of:)`` named, in milliseconds since 1970.
    package mutating func learn(_ times: [TopicPartition: Int64], of group: String) {
        for beginning in beginnings(of: group) {
            guard let time = times[beginning.partition], time >= 0 else { continue }
            courses[group]?[beginning.partition]?.nextWritten = (beginning.start, time)
        }
    }

    private func beginnings(of group: String) -> [Beginning] {
        places.first { $0.group.name == group }?.beginnings ?? []
    }

    // MARK: What is told

    /// How far each group is behind on each partition, by the latest look; in the order of their names.
    package var lags: [PartitionLag] {
        var lags: [PartitionLag] = []
        lags.reserveCapacity(places.map(\.beginnings.count).reduce(0, +))
        for place in places {
            let known = courses[place.group.name] ?? [:]
            for beginning in place.beginnings {
                let course = known[beginning.partition] ?? Course()
                let growth = growths[beginning.partition]
                lags.append(
                    PartitionLag(
                        group: place.group.name, partition: beginning.partition, beginning: beginning,
                        isFollowed: isFollowed(place.group, course), age: age(of: beginning, course),
                        status: status(of: beginning, place.group, course, growth),
                        comesPerSecond: growth?.pace.perSecond, goesPerSecond: course.pace.perSecond))
            }
        }
        return lags
    }

    /// How often each group was seen to have other members than before, or to be about to share partitions out anew;
    /// of groups whose members brokers tell.
    package var rebalanceCounts: [(group: String, count: Int)] {
        places.compactMap { place in
            guard place.group.memberIDs != nil, let assembly = assemblies[place.group.name] else { return nil }
            return (place.group.name, assembly.rebalanceCount)
        }
    }

    private func age(of beginning: Beginning, _ course: Course) -> PartitionLag.Age? {
        guard beginning.start < beginning.end else { return nil }
        func seconds(since time: Int64) -> Double { Double(max(0, milliseconds - time)) / 1_000 }
        if let next = course.nextWritten { return .exact(seconds: seconds(since: next.milliseconds)) }
        switch course.nextGuessed?.written {
        case .about(let time): return .estimated(seconds: seconds(since: time))
        case .before(let time): return .atLeast(seconds: seconds(since: time))
        case nil: return nil
        }
    }

    /// Whether somebody reads there: of a group that is over, or was never begun, nothing is to be expected.
    private func isFollowed(_ group: LagLook.Group, _ course: Course) -> Bool {
        if let count = group.memberCount, count > 0 { return true }
        if !group.isKnown { return course.commits.count > 1 }
        // One that ended before its first commit has left all of it.
        return !course.commits.isEmpty || assemblies[group.name]?.hasHadMembers == true
    }

    private func status(
        of beginning: Beginning, _ group: LagLook.Group, _ course: Course, _ growth: PartitionGrowth?
    ) -> LagStatus? {
        // Whoever has only begun to look has seen no silence yet.
        guard course.lookCount >= Self.commitCountMax, isFollowed(group, course) else { return nil }
        let lag = beginning.end - beginning.start
        // It has not finished the first of what it has to read.
        if course.commits.isEmpty {
            if lag == 0 { return .ok }
            return group.memberCount == 0 ? .stop : .stall
        }
        return LagStatusRule.status(
            commits: course.commits, recentEnds: growth?.recentEnds ?? [], lag: lag, now: milliseconds)
    }
}
