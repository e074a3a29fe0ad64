/// A response whose body is still being received.
package struct StreamedResponse: Sendable {
    package let status: Int
    package let headers: Headers
    package let body: ByteChunks
}

/// A stream's bytes in chunks as received. It can be iterated once, by one task at a time.
package struct ByteChunks: AsyncSequence, Sendable {
    package typealias Element = [UInt8]
    package typealias Failure = HTTPError

    let buffer: StreamBuffer
    let lifetime: StreamLifetime

    package struct AsyncIterator: AsyncIteratorProtocol {
        let buffer: StreamBuffer
        let lifetime: StreamLifetime

        package func next(isolation actor: isolated (any Actor)?) async throws(HTTPError) -> [UInt8]? {
            let lifetime = lifetime
            return try await withTaskCancellationHandler {
                await buffer.next()
            } onCancel: {
                lifetime.end()
            }.get()
        }

        package func next() async throws(HTTPError) -> [UInt8]? {
            try await next(isolation: #isolation)
        }
    }

    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(buffer: buffer, lifetime: lifetime)
    }
}
