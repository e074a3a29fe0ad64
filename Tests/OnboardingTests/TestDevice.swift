import Foundation
import HTTPClient
import LocalCluster
import Model
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Onboarding

/// A simulated device.
struct TestDevice: Sendable {
    let fixture: OnboardingFixture
    let session: String
    let loginURL: String
    private static let retryCountMax = 10

    /// Registers an address. Retries after 503 with `Retry-After`, as the contract requires.
    init(
        _ fixture: OnboardingFixture, _ email: String = OnboardingFixture.known, instance: Int = 0,
        address: String = "192.0.2.1"
    ) async throws {
        var response = try await Self.register(fixture, email, instance: instance, address: address)
        for _ in 0..<Self.retryCountMax where response.status == 503 {
            guard let seconds = response.headers["Retry-After"].flatMap({ Int($0) }) else { break }
            try await Task.sleep(for: .seconds(seconds))
            response = try await Self.register(fixture, email, instance: instance, address: address)
        }
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
        self.fixture = fixture
        session = try #require(json["session_id"] as? String)
        loginURL = try #require(json["login_url"] as? String)
    }

    static func register(
        _ fixture: OnboardingFixture, _ email: String, instance: Int = 0, address: String = "192.0.2.1"
    ) async throws -> Response {
        let body = try JSONSerialization.data(withJSONObject: ["email": email])
        return try await fixture.client.send(
            Request(
                "POST", fixture.url("/register_device", instance: instance),
                headers: [
                    ("Content-Type", "application/json"), ("X-Forwarded-For", address), ("User-Agent", "Test phone"),
                ], body: Array(body)))
    }

    /// Opens the session's WebSocket.
    func connect(instance: Int = 0) async throws -> TestSocket {
        try await TestSocket(port: fixture.ports[instance], path: "/sessions/\(session)")
    }
}

/// A WebSocket client at byte level, which can also violate the protocol.
actor TestSocket {
    struct Event: Sendable, Equatable {
        let id: Int
        let name: String
        let payload: [String: String]
    }

    private let channel: any Channel
    private var bytes: [UInt8] = []
    private(set) var status = 0
    private(set) var head = ""
    private(set) var events: [Event] = []
    private(set) var closeCode: Int?
    private(set) var isEnded = false
    private(set) var pingCount = 0
    var respondsToPings = true

    init(
        port: Int, path: String, headers: String = "", handshake: String? = nil, reads: Bool = true,
        waits: Bool = true
    ) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Forward(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let text = handshake ?? WebSocketBytes.handshake(path, headers: headers)
        // The server may have closed the connection already.
        try? await channel.writeAndFlush(ByteBuffer(string: text))
        Task { await self.read(stream) }
        if reads, waits { try await wait("the handshake completes") { $0.status != 0 || $0.isEnded } }
    }

    deinit { channel.close(promise: nil) }

    // MARK: Sending

    func acknowledge(_ id: Int) async throws { try await send("{\"acknowledge\":\(id)}") }

    func send(_ text: String) async throws { try await frame(0x81, Array(text.utf8)) }

    /// Sends a masked frame with the given first byte.
    func frame(_ first: UInt8, _ data: [UInt8], isMasked: Bool = true) async throws {
        try await raw(WebSocketBytes.frame(first, data, isMasked: isMasked))
    }

    func raw(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    func disconnect() { channel.close(promise: nil) }
    func ignorePings() { respondsToPings = false }

    // MARK: Receiving

    private func read(_ stream: AsyncStream<ByteBuffer>) async {
        for await buffer in stream {
            bytes += Array(buffer.readableBytesView)
            if status == 0 { readHead() }
            if status == 101 { while readFrame() {} }
        }
        isEnded = true
    }

    private func readHead() {
        guard let response = WebSocketBytes.takeHead(&bytes) else { return }
        (status, head) = response
    }

    private func readFrame() -> Bool {
        guard let (opcode, data) = WebSocketBytes.takeFrame(&bytes) else { return false }
        switch opcode {
        case 1: addEvent(data)
        case 8: closeCode = data.count >= 2 ? Int(data[0]) << 8 | Int(data[1]) : 1005
        case 9:
            pingCount += 1
            if respondsToPings { Task { try? await self.frame(0x8A, data) } }
        default: break
        }
        return true
    }

    private func addEvent(_ data: [UInt8]) {
        guard let json = try? JSONSerialization.jsonObject(with: Data(data)) as? [String: Any],
            let id = json["id"] as? Int, let name = json["event"] as? String
        else {
            Issue.record("not an event: \(String(decoding: data, as: UTF8.self))")
            return
        }
        events.append(Event(id: id, name: name, payload: json["payload"] as? [String: String] ?? [:]))
    }

    /// Waits for a condition on the received data.
    func wait(
        _ label: String, within: Duration = patienceMax, _ condition: @Sendable (isolated TestSocket) -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + within
        while !condition(self) {
            guard ContinuousClock.now < deadline else {
                Issue.record("timed out: \(label); status \(status), events \(events), close \(closeCode ?? -1)")
                throw CancellationError()
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Waits for an event with this name.
    @discardableResult
    func event(_ name: String) async throws -> Event {
        try await wait("event \(name)") { socket in socket.events.contains { $0.name == name } }
        return try #require(events.last { $0.name == name })
    }

    /// Waits until the socket closes and returns its close code.
    func ended() async throws -> Int? {
        try await wait("the socket closes") { $0.isEnded }
        return closeCode
    }
}

private final class Forward: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let continuation: AsyncStream<ByteBuffer>.Continuation

    init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension TestSocket {
    /// Whether writing to the connection fails.
    var isDisconnected: Bool {
        get async {
            do {
                try await raw([0x8A, 0x80, 0, 0, 0, 0])
                return false
            } catch {
                return true
            }
        }
    }
}
