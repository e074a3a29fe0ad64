import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import NIOCore
import NIOPosix
import Synchronization

/// A phone and its person's browser, who do not give up: whatever breaks is tried again.
struct BenchPhone: Sendable {
    let client: Client
    let email: String
    /// The instances of onboarding.
    let urls: [String]
    var instance: Int
    /// Sessions that were begun.
    private(set) var attemptCount = 0

    init(client: Client, email: String, urls: [String], instance: Int) {
        self.client = client
        self.email = email
        self.urls = urls
        self.instance = instance
    }

    private struct Registration: Decodable {
        let login_url: String
        let session_id: String
    }

    /// Goes through it all.
    ///
    /// - Returns: Whether the phone was told `data ready` in time.
    mutating func comeIn(within: Duration) async -> Bool {
        let deadline = ContinuousClock.now + within
        while ContinuousClock.now < deadline {
            guard let registration = await register() else {
                await pause()
                continue
            }
            attemptCount += 1
            let session = registration.session_id
            let mail = BenchMail()
            let socket = Task { [urls, instance] in await Self.listen(urls, instance, session, mail) }
            defer { socket.cancel() }
            await mail.waitUntilOpen()
            guard await logIn(registration.login_url) else { continue }
            if await mail.waitUntilReady(until: deadline) { return true }
        }
        return false
    }

    private mutating func pause() async {
        // The other instance may be there.
        instance = 1 - instance
        try? await Task.sleep(for: .milliseconds(Int.random(in: 50...300)))
    }

    private func register() async -> Registration? {
        let body = Array("{\"email\":\"\(email)\"}".utf8)
        let request = Request(
            "POST", urls[instance] + "/register_device", headers: [("Content-Type", "application/json")], body: body,
            totalMax: .seconds(60))
        guard let response = try? await client.send(request), response.status == 200 else { return nil }
        return try? JSONDecoder().decode(Registration.self, from: Data(response.body))
    }

    // MARK: The browser

    /// Logs in at the sandbox's provider.
    ///
    /// - Returns: Whether onboarding says that the person is logged in.
    private func logIn(_ url: String) async -> Bool {
        guard let page = try? await client.send(Request(url, totalMax: .seconds(60))), page.status == 200,
            let transaction = Self.field("transaction", in: page.body),
            let end = url.firstRange(of: "/authorize?")?.lowerBound
        else { return false }
        var fields = FormFields()
        fields.add("transaction", transaction)
        fields.add("email", email)
        fields.add("password", "sandbox")
        let answer = try? await client.send(
            Request(
                "POST", String(url[..<end]) + "/login",
                headers: [("Content-Type", "application/x-www-form-urlencoded")], body: Array(fields.encoded.utf8),
                totalMax: .seconds(60)))
        guard let location = answer?.headers["Location"],
            let query = location.firstRange(of: "/auth_callback")?.lowerBound
        else { return false }
        for attempt in 0..<20 {
            let callback = urls[(instance + attempt) % 2] + location[query...]
            // A page that does not come is loaded again.
            if let response = try? await client.send(Request(callback, totalMax: .seconds(60))), response.status != 503
            {
                return response.status == 200
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
        return false
    }

    private static func field(_ name: String, in page: [UInt8]) -> String? {
        let text = String(decoding: page, as: UTF8.self)
        guard let start = text.firstRange(of: "name=\"\(name)\" value=\"")?.upperBound,
            let end = text[start...].firstIndex(of: "\"")
        else { return nil }
        return String(text[start..<end])
    }

    // MARK: The socket

    /// Keeps a socket open, at one instance or the other, until all was told.
    private static func listen(_ urls: [String], _ first: Int, _ session: String, _ mail: BenchMail) async {
        var instance = first
        while !Task.isCancelled, !mail.isReady {
            if let port = URL(string: urls[instance])?.port {
                await BenchWebSocket.run(port: port, path: "/sessions/\(session)", mail)
            }
            instance = 1 - instance
            try? await Task.sleep(for: .milliseconds(50))
        }
    }
}

/// What a phone was told.
final class BenchMail: Sendable {
    private let state = Mutex<(isOpen: Bool, names: Set<String>)>((false, []))

    var isReady: Bool { state.withLock { $0.names.isSuperset(of: ["token", "realm initialized", "data ready"]) } }

    func opened() { state.withLock { $0.isOpen = true } }
    func told(_ name: String) { state.withLock { _ = $0.names.insert(name) } }

    func waitUntilOpen() async {
        for _ in 0..<500 where !state.withLock({ $0.isOpen }) { try? await Task.sleep(for: .milliseconds(20)) }
    }

    func waitUntilReady(until deadline: ContinuousClock.Instant) async -> Bool {
        while !isReady, .now < deadline { try? await Task.sleep(for: .milliseconds(10)) }
        return isReady
    }
}

/// A WebSocket client that understands as much as an onboarding device must.
enum BenchWebSocket {
    private struct Event: Decodable {
        let id: Int64
        let event: String
    }

    /// Returns when the connection ends.
    static func run(port: Int, path: String, _ mail: BenchMail) async {
        let (chunks, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let connected = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Chunks(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        guard let channel = connected else { return }
        channel.writeAndFlush(ByteBuffer(string: WebSocketBytes.handshake(path)), promise: nil)
        await withTaskCancellationHandler {
            var bytes: [UInt8] = []
            var isOpen = false
            for await chunk in chunks {
                bytes += chunk.readableBytesView
                if !isOpen {
                    guard let head = WebSocketBytes.takeHead(&bytes) else { continue }
                    guard head.status == 101 else { break }
                    isOpen = true
                    mail.opened()
                }
                while let (opcode, data) = WebSocketBytes.takeFrame(&bytes) { answer(opcode, data, channel, mail) }
            }
        } onCancel: {
            channel.close(promise: nil)
        }
        channel.close(promise: nil)
    }

    private static func answer(_ opcode: UInt8, _ data: [UInt8], _ channel: any Channel, _ mail: BenchMail) {
        switch opcode {
        case 1:
            guard let event = try? JSONDecoder().decode(Event.self, from: Data(data)) else { return }
            mail.told(event.event)
            write(0x81, Array("{\"acknowledge\":\(event.id)}".utf8), to: channel)
        case 9: write(0x8A, data, to: channel)
        default: break
        }
    }

    private static func write(_ first: UInt8, _ data: [UInt8], to channel: any Channel) {
        channel.writeAndFlush(ByteBuffer(bytes: WebSocketBytes.frame(first, data)), promise: nil)
    }

    private final class Chunks: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let continuation: AsyncStream<ByteBuffer>.Continuation

        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
