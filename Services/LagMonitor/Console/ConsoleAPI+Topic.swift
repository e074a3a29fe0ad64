import Essentials
import HTTPServer
import Hummingbird
import Kafka
import LagMonitoring
import Model

/// A topic's partitions and consumer groups, as of the last collection cycle.
extension ConsoleAPI {
    /// The limit of partitions of groups in a response.
    private static let partitionCountMax = 1_000

    private struct Partition: Encodable {
        let group: String
        let partition: Int32
        let first: Int64
        let committed: Int64?
        let end: Int64
        let lag: Int64
        let expired: Int64
        /// Age of the oldest unfinished message, in seconds.
        let age: Double?
        /// Whether the message may be older.
        let isAgeMinimum: Bool
        let outRate: Double?
        let status: String?

        init(_ lag: PartitionLag) {
            group = lag.group
            partition = lag.partition.partition
            (first, committed, end) = (lag.beginning.first, lag.beginning.committed, lag.beginning.end)
            (self.lag, expired) = (lag.count, lag.expiredCount)
            age = lag.age.map { ($0.seconds * 10).rounded() / 10 }
            isAgeMinimum = if case .atLeast? = lag.age { true } else { false }
            outRate = lag.outPerSecond.map { ($0 * 1_000).rounded() / 1_000 }
            status = lag.status?.rawValue
        }
    }

    private struct Group: Encodable {
        let name: String
        let memberCount: Int?
        let memberIDs: [String]?
        let isRebalancing: Bool
    }

    func topic(_ request: Request, _ context: EdgeContext) throws -> Response {
        struct TopicPage: Encodable {
            /// The time of the last collection cycle; `nil` if it failed.
            let at: String?
            /// Whether it is a topic of Fieldpost, whose messages can be displayed.
            let isOurs: Bool
            let groups: [Group]
            /// Ordered by group and partition.
            let partitions: [Partition]
            let total: Int
            let isComplete: Bool
        }
        _ = try gate.authenticate(request, context)
        let name = try ConsoleQuery(request).text("name")
        let snapshot = board.snapshot
        let lags = snapshot.lags.filter { $0.partition.topic == name }
        let groupNames = Set(snapshot.sums.filter { $0.topic == name }.map(\.group))
        let groups = snapshot.groups.filter { groupNames.contains($0.name) }.map { group in
            Group(
                name: group.name, memberCount: group.memberCount, memberIDs: group.memberIDs,
                isRebalancing: group.isRebalancing)
        }
        return try Response.json(
            TopicPage(
                at: snapshot.at?.description, isOurs: Topics.contains(name), groups: groups,
                partitions: lags.prefix(Self.partitionCountMax).map(Partition.init),
                total: lags.count, isComplete: snapshot.areLagsComplete))
    }
}
