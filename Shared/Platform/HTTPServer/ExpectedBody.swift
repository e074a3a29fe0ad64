import HummingbirdCore
import NIOCore

/// The routes read the body of a request.
struct ContinueEvent: Sendable {}

/// A request's body that has its client send it when it is first read.
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
