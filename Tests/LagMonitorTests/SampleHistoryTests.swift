import Kafka
import LagMonitoring
import Testing

@testable import LagMonitor

/// Looks of a monitor whose clock is handed in: groups that read all partitions of their topics, and never catch up.
struct MadeLooks {
    var history = LagHistory()
    let topics: [String]
    let partitionCount: Int
    var groups: [String] = ["readers"]

    init(topics: [String], partitionCount: Int) { (self.topics, self.partitionCount) = (topics, partitionCount) }

    /// A look at a time, when every partition has one more message than ten seconds before and half of them are read.
    mutating func look(at milliseconds: Int64) -> Look {
        var available: [TopicPartition: Range<Int64>] = [:]
        var offsets: [TopicPartition: Int64?] = [:]
        let end = milliseconds / 10_000 % 100_000
        for topic in topics {
            for partition in 0..<Int32(partitionCount) {
                let place = TopicPartition(topic: topic, partition: partition)
                available[place] = 0..<end
                offsets[place] = end / 2
            }
        }
        history.take(
            LagLook(
                milliseconds: milliseconds, available: available,
                groups: groups.map { LagLook.Group(name: $0, isKnown: true, offsets: offsets, memberCount: 1) }))
        var look = Look()
        look.take(history.lags)
        return look
    }
}

@Suite struct SampleHistoryTests {
    private static let beginning: Int64 = 1_800_000_000_000
    private let name = SampleHistory.Name(group: "readers", topic: "a")

    private func fill(_ history: inout SampleHistory, _ looks: inout MadeLooks, from: Int64, seconds: Int64) {
        for second in stride(from: from, to: from + seconds, by: 10) {
            let at = Self.beginning + second * 1_000
            history.take(looks.look(at: at).sums, at: at)
        }
    }

    @Test func anHourIsKeptAndWhatIsOlderIsNot() {
        var (history, looks) = (SampleHistory(), MadeLooks(topics: ["a"], partitionCount: 2))
        fill(&history, &looks, from: 0, seconds: 1_800)
        let half = history.points(of: name, countMax: 360)
        #expect(half.count == 360 && half.filter { $0.lag.isNaN }.count == 180 && half[0].lag.isNaN)
        #expect(half.last.map { $0.lag > 0 && $0.comes > 0 } == true)
        fill(&history, &looks, from: 1_800, seconds: 7_200)
        #expect(history.points(of: name, countMax: 360).allSatisfy { !$0.lag.isNaN })
        // A point has the most of what it stands for.
        #expect(history.points(of: name, countMax: 1).first?.lag == history.points(of: name, countMax: 360).last?.lag)
        #expect(history.points(of: name, countMax: 120).count == 120)
        // Time that goes back changes nothing; an hour of silence leaves nothing.
        let last = history.points(of: name, countMax: 360)
        history.take([], at: Self.beginning)
        #expect(history.points(of: name, countMax: 360) == last)
        history.take([], at: Self.beginning + 20_000_000)
        #expect(history.names.isEmpty)
    }

    @Test func aLookInTheSameTenSecondsTakesThePlaceOfTheOneBefore() {
        var (history, looks) = (SampleHistory(), MadeLooks(topics: ["a"], partitionCount: 1))
        for millisecond in [0, 4_000, 9_999] as [Int64] {
            let at = Self.beginning + millisecond
            history.take(looks.look(at: at).sums, at: at)
        }
        #expect(history.points(of: name, countMax: 360).filter { !$0.lag.isNaN }.count == 1)
    }

    @Test func seriesAreBounded() {
        var looks = MadeLooks(topics: (0..<SampleHistory.seriesCountMax + 7).map { "t\($0)" }, partitionCount: 1)
        var history = SampleHistory()
        history.take(looks.look(at: Self.beginning).sums, at: Self.beginning)
        #expect(history.names.count == SampleHistory.seriesCountMax && history.omittedCount == 7)
    }
}
