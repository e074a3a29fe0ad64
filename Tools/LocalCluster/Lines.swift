package import HTTPClient

extension ByteChunks {
    /// Returns the bytes as lines without their line feeds, including an unterminated last line.
    ///
    /// - Parameter bytesMax: The maximum length of a line; a longer line fails the stream.
    package func lines(bytesMax: Int) -> Lines { Lines(chunks: self, bytesMax: bytesMax) }
}

/// A stream's lines, for example of NDJSON.
package struct Lines: AsyncSequence, Sendable {
    package typealias Element = [UInt8]
    package typealias Failure = HTTPError

    fileprivate let chunks: ByteChunks
    fileprivate let bytesMax: Int

    package struct AsyncIterator: AsyncIteratorProtocol {
        let chunks: ByteChunks.AsyncIterator
        let bytesMax: Int
        /// The complete lines, and the beginning of the line that follows them.
        private var lines: ArraySlice<ArraySlice<UInt8>> = []
        private var pending: [UInt8] = []

        fileprivate init(chunks: ByteChunks.AsyncIterator, bytesMax: Int) {
            self.chunks = chunks
            self.bytesMax = bytesMax
        }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPError) -> [UInt8]? {
            while lines.isEmpty {
                guard pending.count <= bytesMax else {
                    throw HTTPError.tooLarge(.maybeSent, "a line is longer than \(bytesMax) bytes")
                }
                guard let chunk = try await chunks.next(isolation: actor) else {
                    defer { pending = [] }
                    return pending.isEmpty ? nil : pending
                }
                var parts = chunk.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                // A chunk without a line feed continues the line.
                guard parts.count > 1 else {
                    pending += chunk
                    continue
                }
                parts[0] = pending[...] + parts[0]
                pending = Array(parts.removeLast())
                lines = parts[...]
            }
            return Array(lines.removeFirst())
        }
    }

    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(chunks: chunks.makeAsyncIterator(), bytesMax: bytesMax)
    }
}
