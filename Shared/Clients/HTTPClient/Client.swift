import Essentials
import Glibc
import Synchronization

/// An HTTP/1.1 and HTTP/2 client: one thread runs all transfers over libcurl's multi interface.
///
/// Connections are kept and reused, per address at most `connectionsPerHostMax`; requests beyond wait for one.
/// A request that writes is sent at most once: where libcurl would repeat it on a new connection because a kept one
/// died, it fails as `.maybeSent` instead. Redirects are not followed, TLS is always verified, and proxies in the
/// environment are ignored.
package final class Client: Sendable {
    package struct Configuration: Sendable {
        /// Connections to one host and port at a time.
        package var connectionsPerHostMax = 128
        /// Idle connections kept, over all hosts.
        package var connectionsIdleMax = 256
        /// How long a connection may have been idle to be used again; servers close theirs after a while.
        package var connectionIdleMax: Duration = .seconds(30)
        /// Transfers at a time, streams and waiting ones included; more are refused as `.notSent`.
        package var inFlightMax = 32_768
        /// What a stream's reader may lag behind before its connection is read no further.
        package var streamBufferBytesMax = 256 * 1024
        /// A PEM file of the certificate authorities to trust instead of the system's.
        package var caFile: String?
        /// For example `http://proxy.example.com:3128`.
        package var proxy: String?
        package var userAgent = "fieldpost"
        /// Connects to addresses of the public Internet only, whatever a name leads to: for addresses that people have
        /// given. What is refused fails as `.notSent`. With a proxy it is the proxy's address that counts.
        package var publicAddressesOnly = false

        /// Tells of each answer when its server's certificate ends: ``Response/certificateEnd``.
        package var readsCertificates = false

        package init() {}
    }

    private let inbox = Inbox()
    private let configuration: Configuration

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        _ = isLibraryReady
        let inbox = inbox
        Thread.start { TransferLoop.run(inbox, configuration) }
    }

    deinit { _ = inbox.post(.stop) }

    /// Sends one request and waits for its whole answer.
    ///
    /// Cancelling the task ends the transfer, and fails with `isCancelled`.
    ///
    /// - Returns: The answer, whatever its status.
    /// - Throws: What is known of a request that got no whole answer.
    package func send(_ request: Request) async throws(HTTPError) -> Response {
        try request.validate()
        return try await inSpan(of: request, status: \.status) { traced throws(HTTPError) in
            try await send(Order(traced))
        }
    }

    /// Sends a request as a span of the current task's trace, where that is recorded.
    private func inSpan<Answer>(
        of request: Request, status: (Answer) -> Int, _ send: (Request) async throws(HTTPError) -> Answer
    ) async throws(HTTPError) -> Answer {
        let recorder = SpanRecorder.process
        guard let span = recorder.begin(TraceContext.current) else {
            return try await send(request.carrying(TraceContext.current))
        }
        do throws(HTTPError) {
            let answer = try await send(request.carrying(span.context))
            recorder.end(span, request.work(status: status(answer)))
            return answer
        } catch {
            recorder.end(span, request.work(status: error.status, failure: error.kind))
            throw error
        }
    }

    func send(_ order: Order) async throws(HTTPError) -> Response {
        try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if !inbox.post(.send(order, continuation)) {
                    continuation.resume(returning: .failure(.shutDown(.notSent)))
                }
            }
        } onCancel: {
            cancel(order)
        }.get()
    }

    /// Sends one request and hands out its answer's body while it arrives, for answers that stay open.
    ///
    /// A slow reader holds up the sender, not this process: beyond `streamBufferBytesMax` the connection is not read.
    /// Letting go of the body, or cancelling the task that reads it, closes the transfer. `totalMax` and
    /// `answerBytesMax` do not apply; `connectMax` does, and `idleMax` bounds the wait for the head too.
    ///
    /// - Parameter idleMax: How long nothing may arrive before the stream fails; time spent waiting for a slow reader
    ///   does not count.
    package func stream(_ request: Request, idleMax: Duration? = nil) async throws(HTTPError) -> StreamedResponse {
        try request.validate()
        return try await inSpan(of: request, status: \.status) { traced throws(HTTPError) in
            try await open(Order(traced), idleMax: idleMax)
        }
    }

    private func open(_ order: Order, idleMax: Duration?) async throws(HTTPError) -> StreamedResponse {
        let inbox = inbox
        let buffer = StreamBuffer(
            bytesMax: configuration.streamBufferBytesMax, resume: { _ = inbox.post(.resume(order.id)) })
        guard inbox.post(.stream(order, buffer, idleMax: idleMax)) else { throw .shutDown(.notSent) }
        let lifetime = StreamLifetime { _ = inbox.post(.cancel(order.id)) }
        let head = try await withTaskCancellationHandler {
            await buffer.head()
        } onCancel: {
            cancel(order)
        }.get()
        return StreamedResponse(
            status: head.status, headers: head.headers, body: ByteChunks(buffer: buffer, lifetime: lifetime))
    }

    /// Ends the thread. Transfers that still run fail, and so does every later request.
    package func shutDown() {
        _ = inbox.post(.stop)
    }

    private func cancel(_ order: Order) {
        order.isCancelled.store(true, ordering: .releasing)
        _ = inbox.post(.cancel(order.id))
    }
}

/// A thread that ends with its body.
private enum Thread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    static func start(_ run: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let body = unsafe Unmanaged.passRetained(Body(run))
        let code = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, body.toOpaque())
        precondition(code == 0, "the system refuses another thread")
        pthread_detach(thread)
    }
}
