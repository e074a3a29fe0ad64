import Foundation
import LocalCluster
import TestSupport

/// The emulated broker as users start it: the built `sandbox`, which ends with this value.
final class SandboxBroker: Sendable {
    let port: Int
    private let folder: ClusterFolder
    private let process: ClusterProcess

    /// Returns when it accepts connections.
    ///
    /// - Parameter topics: Topics as `name:partitions`, in addition to the catalogue's.
    init(topics: [String], port: Int? = nil, roundTrip: Int = 0) throws {
        let port = try port ?? Ports.free()
        self.port = port
        folder = try ClusterFolder("sandbox-broker")
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: LocalCluster.executables + "/sandbox",
                arguments: ["broker", "--port", "\(port)", "--round-trip", "\(roundTrip)"]
                    + topics.flatMap { ["--topic", $0] },
                environment: [ClusterFolder.mark: folder.markValue], logPath: folder.logPath("broker")))
        try waitUntil("the broker listens") {
            if let end = process.end { throw ClusterFailure("the broker ended (\(end)): \(process.logTail())") }
            return Ports.isListening(port, by: process.id)
        }
    }

    deinit { process.kill9() }

    var address: String { "127.0.0.1:\(port)" }

    /// The number of requests so far.
    func requestCount(_ api: String, from clientID: String) throws -> Int {
        try BrokerRequests(of: process).counts[BrokerRequests.Kind(api, clientID), default: 0]
    }

    /// Blocks until there were `count` more requests.
    func waitForRequests(_ count: Int, _ api: String, from clientID: String) throws {
        let target = try requestCount(api, from: clientID) + count
        try waitUntil("\(count) requests") { try requestCount(api, from: clientID) >= target }
    }

    /// The number of its open files and connections.
    var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/fd").count) ?? 0
    }
}

/// A connection that sends single requests of the Kafka protocol.
struct KafkaConnection: ~Copyable {
    private var connection: RawConnection

    init(_ broker: SandboxBroker) throws { connection = try RawConnection(port: broker.port) }

    /// - Parameter id: Its correlation id.
    func send(_ key: Int16, version: Int16, id: Int32, from clientID: String = "raw", _ body: [UInt8] = []) {
        let header = bytes(key) + bytes(version) + bytes(id) + bytes(clientID)
        connection.send(bytes(Int32(header.count + body.count)) + header + body)
    }

    /// Sends a Fetch of partition 0 of a topic.
    func sendFetch(_ topic: String, from offset: Int64, waitMilliseconds: Int32, id: Int32) {
        // Replica, maximum wait, minimum bytes, maximum bytes, isolation; the partition.
        let limits = bytes(Int32(-1)) + bytes(waitMilliseconds) + bytes(Int32(1)) + bytes(Int32(1_000_000)) + [0]
        let partition = bytes(Int32(0)) + bytes(offset) + bytes(Int32(1_000_000))
        send(1, version: 4, id: id, limits + bytes(Int32(1)) + bytes(topic) + bytes(Int32(1)) + partition)
    }

    /// Sends the request that needs nothing, ApiVersions.
    func sendPing(id: Int32) { send(18, version: 0, id: id) }

    mutating func response() throws -> (id: Int32, body: [UInt8]) {
        let length = integer(try connection.take(4))
        let content = try connection.take(Int(length))
        return (integer(content[..<4]), Array(content[4...]))
    }

    private func integer(_ bytes: some Sequence<UInt8>) -> Int32 { bytes.reduce(0) { $0 << 8 | Int32($1) } }

    private func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: value.bigEndian) { unsafe Array($0) }
    }

    private func bytes(_ text: String) -> [UInt8] { bytes(Int16(text.utf8.count)) + Array(text.utf8) }
}
