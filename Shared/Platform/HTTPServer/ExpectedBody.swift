import HummingbirdCore
import NIOCore

/// Signals that the route reads the body of a request.
struct ContinueEvent: Sendable {}

/// A request body whose first read makes the server send `100 Continue`.
struct ExpectedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        var channel: (any Channel)?

        @concurrent mutating func next() async throws -> ByteBuffer? {
            channel?.triggerUserOutboundEvent(ContinueEvent(), promise: nil)
            channel = nil
            return try await base.next()
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), channel: channel) }
}
