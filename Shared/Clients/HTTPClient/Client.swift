import Essentials
import Synchronization

/// An HTTP/1.1 and HTTP/2 client that runs all transfers on one thread with libcurl's multi interface.
///
/// Connections are reused, with at most `connectionsPerHostMax` per host; further requests wait for a free one. A
/// request with an unsafe method is sent at most once: when libcurl would resend it because a reused connection was
/// closed, it fails as `.maybeSent`. Redirects are not followed, TLS is always verified, and proxy environment
/// variables are ignored.
package final class Client: Sendable {
    package struct Configuration: Sendable {
        /// Maximum number of concurrent connections per host and port.
        package var connectionsPerHostMax = 128
        /// Maximum number of idle connections over all hosts.
        package var connectionsIdleMax = 256
        /// Maximum idle time after which a connection is not reused; servers close idle connections.
        package var connectionIdleMax: Duration = .seconds(30)
        /// Maximum number of concurrent transfers, including streams and waiting ones; further requests fail as
        /// `.notSent`.
        package var inFlightMax = 32_768
        /// Maximum number of unread bytes of a stream; beyond it, reading from the connection is suspended.
        package var streamBufferBytesMax = 256 * 1024
        /// A PEM file of trusted certificate authorities, in addition to libcurl's directory (`/etc/ssl/certs` on
        /// Debian).
        package var caFile: String?
        /// The URL of a proxy, such as `http://proxy.example.com:3128`.
        package var proxy: String?
        package var userAgent = "fieldpost"
        /// Whether to connect only to public addresses, for URLs that people supply. The resolved address counts; for
        /// requests through a proxy, the proxy's. A rejected request fails as `.notSent`.
        package var publicAddressesOnly = false

        /// Whether responses include the expiry of the server's certificate: ``Response/certificateEnd``.
        package var readsCertificates = false

        package init() {}
    }

    private let commands = CommandQueue()
    private let configuration: Configuration

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        _ = isLibraryReady
        let commands = commands
        startThread(named: "http-client") { TransferLoop.run(commands, configuration) }
    }

    deinit { _ = commands.post(.stop) }

    /// Sends a request and waits for the complete response.
    ///
    /// Cancelling the task ends the transfer with an error whose `isCancelled` is true.
    ///
    /// - Returns: The response, of any status.
    /// - Throws: ``HTTPError`` if there is no complete response.
    package func send(_ request: Request) async throws(HTTPError) -> Response {
        try request.validate()
        return try await inSpan(of: request, status: \.status) { traced throws(HTTPError) in
            try await send(QueuedRequest(traced))
        }
    }

    /// Records the request as a span of the current task's trace, if that is recorded.
    private func inSpan<Success>(
        of request: Request, status: (Success) -> Int, _ send: (Request) async throws(HTTPError) -> Success
    ) async throws(HTTPError) -> Success {
        let recorder = SpanRecorder.process
        guard let span = recorder.begin(TraceContext.current) else {
            return try await send(request.propagating(TraceContext.current))
        }
        do throws(HTTPError) {
            let response = try await send(request.propagating(span.context))
            recorder.end(span, request.spanWork(status: status(response)))
            return response
        } catch {
            recorder.end(span, request.spanWork(status: error.status, failure: error.kind))
            throw error
        }
    }

    func send(_ queued: QueuedRequest) async throws(HTTPError) -> Response {
        try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if !commands.post(.send(queued, continuation)) {
                    continuation.resume(returning: .failure(.shutDown(.notSent)))
                }
            }
        } onCancel: {
            cancel(queued)
        }.get()
    }

    /// Sends a request and returns its response while the body arrives, for long-lived responses.
    ///
    /// Backpressure: beyond `streamBufferBytesMax` unread bytes the connection is not read. Releasing the body, or
    /// cancelling the task that reads it, ends the transfer. `totalMax` and `responseBytesMax` do not apply;
    /// `connectMax` does, and `idleMax` also limits the wait for the head.
    ///
    /// - Parameter idleMax: The maximum time without data before the stream fails; time spent waiting for a slow reader
    ///   does not count.
    package func stream(_ request: Request, idleMax: Duration? = nil) async throws(HTTPError) -> StreamedResponse {
        try request.validate()
        return try await inSpan(of: request, status: \.status) { traced throws(HTTPError) in
            try await open(QueuedRequest(traced), idleMax: idleMax)
        }
    }

    private func open(_ queued: QueuedRequest, idleMax: Duration?) async throws(HTTPError) -> StreamedResponse {
        let commands = commands
        let buffer = StreamBuffer(
            bytesMax: configuration.streamBufferBytesMax, resume: { _ = commands.post(.resume(queued.id)) })
        guard commands.post(.stream(queued, buffer, idleMax: idleMax)) else { throw .shutDown(.notSent) }
        let lifetime = StreamLifetime { _ = commands.post(.cancel(queued.id)) }
        let head = try await withTaskCancellationHandler {
            await buffer.head()
        } onCancel: {
            cancel(queued)
        }.get()
        return StreamedResponse(
            status: head.status, headers: head.headers, body: ByteChunks(buffer: buffer, lifetime: lifetime))
    }

    /// Ends the thread. Transfers in progress and all later requests fail.
    package func shutDown() {
        _ = commands.post(.stop)
    }

    private func cancel(_ queued: QueuedRequest) {
        queued.isCancelled.store(true, ordering: .releasing)
        _ = commands.post(.cancel(queued.id))
    }
}
