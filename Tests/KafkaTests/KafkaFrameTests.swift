import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import Sandbox

/// The frames that the sandbox's broker reads from a connection.
@Suite(.ownThreads) struct KafkaFrameTests {
    private final class Frames {
        var received: [ByteBuffer] = []
    }

    private static let frames = [[], [7], Array(1...200)].map { (body: [UInt8]) in
        var frame = ByteBuffer(integer: Int32(body.count))
        frame.writeBytes(body)
        return frame
    }

    private func reader(_ frames: Frames) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: KafkaFrameReader(onFrame: { frames.received.append($0) }, onEnd: {}))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    /// TCP may deliver several frames together, or parts of one.
    @Test func framesAreIndependentOfPackets() throws {
        let bytes = Self.frames.reduce(into: ByteBuffer()) { $0.writeImmutableBuffer($1) }
        for cut in 0...bytes.readableBytes {
            let frames = Frames()
            let channel = try reader(frames)
            var rest = bytes
            let first = rest.readSlice(length: cut)
            try channel.writeInbound(#require(first))
            try channel.writeInbound(rest)
            #expect(frames.received == Self.frames, "cut at \(cut)")
            _ = try channel.finish()
        }
        let frames = Frames()
        let channel = try reader(frames)
        for byte in bytes.readableBytesView { try channel.writeInbound(ByteBuffer(bytes: [byte])) }
        #expect(frames.received == Self.frames)
        _ = try channel.finish()
    }

    /// The first bytes of another protocol, such as TLS, are no length.
    @Test(arguments: [Int32.min, -1, 100_000_001, .max]) func invalidLengthClosesConnection(length: Int32) throws {
        let frames = Frames()
        let channel = try reader(frames)
        try channel.writeInbound(ByteBuffer(integer: length))
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive && frames.received.isEmpty)
        _ = try? channel.finish()
    }
}
