import NIOCore
import NIOPosix

/// The state that the connections of a broker share. It belongs to their event loop.
final class BrokerState {
    private struct RequestKind: Hashable {
        let clientID: String
        let key: Int16
    }

    /// Additional latency of each response.
    let roundTrip: TimeAmount
    /// The connections whose Fetch waits for records.
    var waiting: [ObjectIdentifier: BrokerConnection] = [:]
    /// Number of responses to a Produce so far.
    private(set) var produceCount = 0
    /// Topic → `produceCount` of the last response that names it.
    private var produced: [String: Int] = [:]
    private var requestCounts: [RequestKind: Int] = [:]

    init(roundTrip: TimeAmount) { self.roundTrip = roundTrip }

    /// Notes that records were written, and wakes the connections that wait for them.
    func add(produced topics: [String]) {
        produceCount += 1
        for topic in topics { produced[topic] = produceCount }
        for connection in Array(waiting.values) { connection.wake(for: topics) }
    }

    func hasProduced(_ topics: [String], since count: Int) -> Bool {
        topics.contains { produced[$0, default: 0] > count }
    }

    func count(_ request: KafkaRequest) {
        requestCounts[RequestKind(clientID: request.clientID, key: request.key), default: 0] += 1
    }

    /// Lines of count, API and client id, and a last line with their sum.
    var requestTable: String {
        let lines = requestCounts.map { kind, count in
            "\(count) \(Self.names[kind.key] ?? "api-\(kind.key)") \(kind.clientID)"
        }
        return (lines.sorted() + ["\(requestCounts.values.reduce(0, +)) requests"]).joined(separator: "\n")
    }

    /// The requests that the mock cluster supports (Kafka protocol, "Api Keys").
    private static let names: [Int16: String] = [
        0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
        10: "FindCoordinator", 11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup",
        18: "ApiVersions", 22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn",
        28: "TxnOffsetCommit",
    ]
}

/// Serves Kafka clients with a mock cluster, whose responses to a Fetch it times as Kafka does.
struct BrokerServer {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let state: NIOLoopBoundBox<BrokerState>

    /// Listens until the process ends.
    ///
    /// - Parameter mockPort: The port of 127.0.0.1 on which the mock cluster listens.
    /// - Throws: `EmulatorError` if the address is not one of this machine, or the port is taken.
    init(host: String, port: Int, mockPort: Int, roundTrip: TimeAmount) throws {
        let state = NIOLoopBoundBox.makeBoxSendingValue(BrokerState(roundTrip: roundTrip), eventLoop: group.next())
        self.state = state
        let server = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { client in
                ClientBootstrap(group: client.eventLoop).connect(host: "127.0.0.1", port: mockPort)
                    .flatMapThrowing { mock in _ = try BrokerConnection(client, mock, state.value) }
            }
        do {
            _ = try server.bind(host: host, port: port).wait()
        } catch {
            throw EmulatorError("broker: \(host):\(port) is taken, or not an address of this machine")
        }
    }

    /// The requests so far.
    func requestTable() throws -> String { try group.next().submit { state.value.requestTable }.wait() }
}
