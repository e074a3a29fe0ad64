import NIOCore

/// Splits the bytes of a connection into the frames of the Kafka protocol: a length and as many bytes.
final class KafkaFrameReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var received = ByteBuffer()
    private let onFrame: (ByteBuffer) -> Void
    private let onEnd: () -> Void

    /// librdkafka's `receive.message.max.bytes`.
    private static let bytesMax = 100_000_000

    /// - Parameters:
    ///   - onFrame: Called with each frame, which begins with its length.
    ///   - onEnd: Called when the connection is closed.
    init(onFrame: @escaping (ByteBuffer) -> Void, onEnd: @escaping () -> Void) {
        (self.onFrame, self.onEnd) = (onFrame, onEnd)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = bytes } else { received.writeBuffer(&bytes) }
        while let length = received.getInteger(at: received.readerIndex, as: Int32.self) {
            guard (0...Self.bytesMax).contains(Int(length)) else { return context.close(promise: nil) }
            guard let frame = received.readSlice(length: 4 + Int(length)) else {
                received.discardReadBytes()
                return
            }
            onFrame(frame)
        }
        received.discardReadBytes()
    }

    func channelInactive(context: ChannelHandlerContext) { onEnd() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// The header of a request.
struct KafkaRequest {
    static let produce: Int16 = 0
    static let fetch: Int16 = 1

    let key: Int16
    let version: Int16
    /// The number by which the client assigns the response.
    let correlationID: Int32
    let clientID: String
    private let bodyIndex: Int

    /// Returns `nil` for a frame that is too short.
    init?(_ frame: ByteBuffer) {
        var header = frame
        guard
            let (_, key, version, correlationID, length) = header.readMultipleIntegers(
                as: (Int32, Int16, Int16, Int32, Int16).self),
            let clientID = header.readString(length: max(0, Int(length)))
        else { return nil }
        (self.key, self.version, self.correlationID) = (key, version, correlationID)
        (self.clientID, bodyIndex) = (clientID, header.readerIndex)
    }

    /// Sets the time that a Fetch may wait to 0, and returns what it was; `nil` for other requests.
    func takeFetchWait(from frame: inout ByteBuffer) -> TimeAmount? {
        let index = bodyIndex + 4  // after the replica id
        // From version 12, lengths are encoded differently. librdkafka 2.0.2 has 11.
        guard key == Self.fetch, version <= 11, let wait = frame.getInteger(at: index, as: Int32.self) else {
            return nil
        }
        frame.setInteger(0, at: index, as: Int32.self)
        return .milliseconds(Int64(max(0, wait)))
    }

    /// Returns the topics of a Produce response.
    func producedTopics(in response: ByteBuffer) -> [String] {
        var response = response
        // Partition, error and offset; the time; the first offset, which the mock cluster omits in version 5.
        let size = 14 + (version >= 2 ? 8 : 0) + (version >= 6 ? 8 : 0)
        guard response.skip(8) else { return [] }
        return response.readTopics { $0.skip(size) } ?? []
    }

    /// Returns the topics of a Fetch response without a record and an error; `nil` if it has one.
    func topicsWithoutRecords(in response: ByteBuffer) -> [String]? {
        var response = response
        // Size and correlation id; throttle time.
        guard response.skip(version >= 1 ? 12 : 8) else { return nil }
        if version >= 7 {
            guard response.readInteger(as: Int16.self) == 0, response.skip(4) else { return nil }
        }
        return response.readTopics(isWithoutRecords)
    }

    private func isWithoutRecords(_ partition: inout ByteBuffer) -> Bool {
        guard partition.skip(4), partition.readInteger(as: Int16.self) == 0 else { return false }
        // High watermark, last stable offset, first offset.
        guard partition.skip(8 + (version >= 4 ? 8 : 0) + (version >= 5 ? 8 : 0)) else { return false }
        if version >= 4 {
            guard let abortedCount = partition.readInteger(as: Int32.self) else { return false }
            guard partition.skip(16 * max(0, Int(abortedCount))) else { return false }
        }
        // A preferred replica is a result, too.
        if version >= 11, partition.readInteger(as: Int32.self) != -1 { return false }
        return partition.readInteger(as: Int32.self).map { $0 <= 0 } ?? false
    }
}

extension ByteBuffer {
    fileprivate mutating func skip(_ count: Int) -> Bool {
        guard count <= readableBytes else { return false }
        moveReaderIndex(forwardBy: count)
        return true
    }

    /// Reads an array of topics, each with an array of partitions.
    ///
    /// - Parameter readPartition: Returns `false` to end.
    /// - Returns: The topics; `nil` if `readPartition` returned `false`, or the array is incomplete.
    fileprivate mutating func readTopics(_ readPartition: (inout ByteBuffer) -> Bool) -> [String]? {
        guard let topicCount = readInteger(as: Int32.self) else { return nil }
        var topics: [String] = []
        while topics.count < topicCount {
            guard let length = readInteger(as: Int16.self), let topic = readString(length: max(0, Int(length))),
                let partitionCount = readInteger(as: Int32.self)
            else { return nil }
            for _ in 0..<max(0, partitionCount) {
                guard readPartition(&self) else { return nil }
            }
            topics.append(topic)
        }
        return topics
    }
}
