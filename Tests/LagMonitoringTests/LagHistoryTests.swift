import Kafka
import Testing

@testable import LagMonitoring

struct LagHistoryTests {
    private static let partition = TopicPartition(topic: "t", partition: 0)

    /// - Parameter second: Time of the snapshot.
    private func snapshot(
        _ second: Int64, committed: Int64?, _ available: Range<Int64>, members: Int? = 1, isKnown: Bool = true
    ) -> LagSnapshot {
        LagSnapshot(
            milliseconds: second * 1_000, available: [Self.partition: available],
            groups: [
                LagSnapshot.Group(
                    name: "g", isKnown: isKnown, offsets: [Self.partition: committed], memberCount: members)
            ])
    }

    private func lag(_ snapshots: [LagSnapshot]) throws -> PartitionLag {
        var history = LagHistory()
        for snapshot in snapshots { history.take(snapshot) }
        return try #require(history.lags.first)
    }

    @Test func lagStartsAtTheGroupsNextOffset() throws {
        #expect(try lag([snapshot(0, committed: 3, 0..<10)]).count == 7)
        #expect(try lag([snapshot(0, committed: nil, 2..<10)]).count == 8)
        let expired = try lag([snapshot(0, committed: 3, 5..<10)])
        #expect(expired.count == 5 && expired.expiredCount == 2)
        // An offset committed in lost content is ignored.
        #expect(try lag([snapshot(0, committed: 30, 0..<10)]).count == 10)
    }

    @Test func ageIsEstimatedFromPartitionGrowth() throws {
        let snapshots = [
            snapshot(0, committed: 0, 0..<10), snapshot(10, committed: 10, 0..<10), snapshot(20, committed: 10, 0..<20),
            snapshot(30, committed: 15, 0..<20),
        ]
        // The sixth of ten messages that arrived within ten seconds.
        #expect(try lag(snapshots).age == .estimated(seconds: 14))
        // The first of them arrived after a tenth of the time.
        #expect(try lag(Array(snapshots.prefix(3))).age == .estimated(seconds: 9))
        // The age of messages from before the first snapshot is unknown.
        #expect(
            try lag([snapshot(0, committed: 4, 0..<10), snapshot(10, committed: 4, 0..<10)]).age
                == .atLeast(seconds: 10))
        #expect(try lag([snapshot(0, committed: 10, 0..<10)]).age == nil)
    }

    /// Regardless of the number of snapshots.
    @Test func ageOfStalledMessageGrows() throws {
        let snapshots = (0..<500).map {
            snapshot($0 * 10, committed: min($0 * 7, 70), 0..<(1 + $0 * 7), isKnown: false)
        }
        // The message after the one at 70 arrived with the snapshot at 110.
        let age = try lag(snapshots).age
        guard case .estimated(let seconds) = age else {
            Issue.record("\(String(describing: age))")
            return
        }
        #expect(abs(seconds - Double(4_990 - 110)) <= 10)
    }

    @Test func ageOfDistantMessageIsApproximate() throws {
        // The group is two thousand snapshots behind: at each one, ten messages are written and ten are consumed.
        for distance in [30, 300, 2_000] as [Int64] {
            let snapshots = (0...(distance + 500)).map {
                snapshot($0 * 10, committed: max(0, ($0 - distance) * 10), 0..<(1 + $0 * 10), isKnown: false)
            }
            let age = try #require(try lag(snapshots).age)
            guard case .estimated = age else {
                Issue.record("\(distance): \(age)")
                continue
            }
            #expect(abs(age.seconds / Double(distance * 10) - 1) < 0.2, "\(distance): \(age)")
        }
    }

    @Test func staleDataIsDroppedDuringPersistentProblem() throws {
        var history = LagHistory()
        for number in 0..<10 { history.take(snapshot(Int64(number) * 10, committed: 7, 0..<100)) }
        func missed(_ second: Int64) -> LagSnapshot {
            LagSnapshot(
                milliseconds: second * 1_000, available: [:], groups: [], problems: ["x": KafkaError(timeout: "x")])
        }
        history.take(missed(3_600))
        history.take(snapshot(3_610, committed: 7, 0..<100))
        #expect(history.lags.first?.status == .stall, "kept")
        history.take(missed(7_300))
        history.take(snapshot(7_310, committed: 7, 0..<100))
        #expect(history.lags.first?.status == nil, "dropped")
    }

    @Test func messageTimestampPrecedesEstimate() throws {
        var history = LagHistory()
        history.take(snapshot(100, committed: 4, 0..<10))
        #expect(history.offsetsOfUnknownAge(of: "g") == [Self.partition: 4])
        history.learn([Self.partition: 58_000], of: "g")
        #expect(history.offsetsOfUnknownAge(of: "g").isEmpty)
        #expect(history.lags.first?.age == .exact(seconds: 42))
        // Kept while the group stays at this offset.
        history.take(snapshot(110, committed: 4, 0..<11))
        #expect(history.offsetsOfUnknownAge(of: "g").isEmpty && history.lags.first?.age == .exact(seconds: 52))
        history.take(snapshot(120, committed: 5, 0..<11))
        #expect(history.offsetsOfUnknownAge(of: "g") == [Self.partition: 5])
    }

    @Test func lostContentIsNotUsedForEstimates() throws {
        let snapshots = [
            snapshot(0, committed: 0, 0..<10), snapshot(10, committed: 0, 0..<20), snapshot(20, committed: nil, 0..<5),
        ]
        #expect(try lag(snapshots).age == .atLeast(seconds: 0))
    }

    @Test func statusNeedsEnoughSamples() throws {
        func status(_ count: Int64, members: Int?, _ committed: (Int64) -> Int64) throws -> LagStatus? {
            try lag(
                (0..<count).map { snapshot($0 * 10, committed: committed($0), 0..<(100 + $0 * 10), members: members) }
            )
            .status
        }
        // Members without commits: stalled. No members: stopped.
        #expect(try status(9, members: 1, { _ in 7 }) == nil)
        #expect(try status(10, members: 1, { _ in 7 }) == .stall)
        #expect(try status(10, members: 0, { _ in 7 }) == .stop)
        // Members that brokers do not list are detected by commits alone.
        #expect(try status(10, members: nil, { _ in 7 }) == .stop)
        #expect(try status(10, members: nil, { 7 + $0 }) == .warn)
        #expect(try status(10, members: 1, { 7 + $0 * 20 }) == .ok)
        #expect(try status(10, members: 1, { $0 == 8 ? 3 : 7 + $0 }) == .rewind)
    }

    @Test func endedGroupHasNoStatus() throws {
        func lag(members: Int?, isKnown: Bool, _ committed: (Int64) -> Int64?) throws -> PartitionLag {
            try self.lag(
                (0..<10).map {
                    snapshot($0 * 10, committed: committed($0), 0..<(100 + $0), members: members, isKnown: isKnown)
                })
        }
        // Another program's group that ended long ago; one that was seen committing.
        #expect(try lag(members: 0, isKnown: false) { _ in 7 }.status == nil)
        #expect(try lag(members: 0, isKnown: false) { _ in 7 }.hasConsumer == false)
        #expect(try lag(members: 0, isKnown: false) { $0 < 2 ? 7 + $0 : 8 }.status == .stop)
        // A service without members, from the start; one that is stalled on its first message.
        #expect(try lag(members: 0, isKnown: true) { _ in nil }.status == nil)
        #expect(try lag(members: 1, isKnown: true) { _ in nil }.status == .stall)
        // One that had members, and ended before its first commit.
        let ended = try self.lag(
            (0..<10).map {
                snapshot($0 * 10, committed: nil, 0..<(100 + $0), members: $0 < 2 ? 1 : 0, isKnown: true)
            })
        #expect(ended.status == .stop && ended.hasConsumer)
    }

    @Test func commitsInLostContentAreIgnored() throws {
        // It was at the end; then the broker restarted empty, and no consumer reads the new messages.
        let snapshots = (0..<10).map { snapshot($0 * 10, committed: 1_000, 0..<1_000) }
        let after = (10..<25).map { snapshot($0 * 10, committed: 1_000, 0..<(10 + $0)) }
        #expect(try lag(snapshots + after).status == .stall)
    }

    @Test func incompleteSnapshotDropsNothing() throws {
        var history = LagHistory()
        for number in 0..<10 { history.take(snapshot(Int64(number) * 10, committed: 7, 0..<100)) }
        #expect(history.lags.first?.status == .stall)
        history.take(
            LagSnapshot(milliseconds: 100_000, available: [:], groups: [], problems: ["g": KafkaError(timeout: "x")]))
        #expect(history.lags.isEmpty)
        history.take(snapshot(110, committed: 7, 0..<100))
        #expect(history.lags.first?.status == .stall)
    }

    @Test func removedGroupIsDropped() {
        var history = LagHistory()
        history.take(snapshot(0, committed: 3, 0..<10))
        history.take(LagSnapshot(milliseconds: 10_000, available: [:], groups: []))
        #expect(history.lags.isEmpty)
    }
}
