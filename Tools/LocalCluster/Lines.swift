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
        private var pending: [UInt8] = []
        /// The start of the next line, and the offset up to which `pending` contains no line feed.
        private var start = 0
        private var searched = 0

        fileprivate init(chunks: ByteChunks.AsyncIterator, bytesMax: Int) {
            self.chunks = chunks
            self.bytesMax = bytesMax
        }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPError) -> [UInt8]? {
            while true {
                if let end = pending[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                    let line = Array(pending[start..<end])
                    start = end + 1
                    searched = start
                    return line
                }
                pending.removeSubrange(..<start)
                start = 0
                searched = pending.count
                guard pending.count <= bytesMax else {
                    throw HTTPError(
                        outcome: .maybeSent, code: HTTPError.tooLargeCode,
                        message: "a line is longer than \(bytesMax) bytes")
                }
                guard let chunk = try await chunks.next(isolation: actor) else {
                    defer { (pending, searched) = ([], 0) }
                    return pending.isEmpty ? nil : pending
                }
                pending.append(contentsOf: chunk)
            }
        }

        package mutating func next() async throws(HTTPError) -> [UInt8]? {
            try await next(isolation: #isolation)
        }
    }

    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(chunks: chunks.makeAsyncIterator(), bytesMax: bytesMax)
    }
}
