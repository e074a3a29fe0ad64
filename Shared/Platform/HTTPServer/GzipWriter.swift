import CZlib
package import HTTPTypes
package import Hummingbird
package import NIOCore

/// Writes a response body as gzip (RFC 1952); what was written can be decompressed as soon as it arrives.
///
/// Writes share no history: a stream that waits needs no memory for compression.
package struct GzipWriter: ResponseBodyWriter {
    /// zlib returned no output.
    struct CompressionFailure: Error {}

    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
    /// An empty last block.
    private static let lastBlock: [UInt8] = [3, 0]

    private var base: any ResponseBodyWriter
    private var checksum: UInt = 0
    /// Number of uncompressed bytes, modulo 2³².
    private var count: UInt32 = 0
    private var isStarted = false

    package init(_ base: any ResponseBodyWriter) { self.base = base }

    @concurrent package mutating func write(_ buffer: ByteBuffer) async throws {
        try await base.write(compressed(buffer))
    }

    @concurrent package mutating func write(contentsOf buffers: some Sequence<ByteBuffer>) async throws {
        var all = ByteBuffer()
        for var buffer in buffers { all.writeBuffer(&buffer) }
        try await write(all)
    }

    @concurrent package consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        var end = ByteBuffer(bytes: isStarted ? [] : Self.header)
        end.writeBytes(Self.lastBlock)
        end.writeInteger(UInt32(truncatingIfNeeded: checksum), endianness: .little)
        end.writeInteger(count, endianness: .little)
        try await base.write(end)
        try await base.finish(trailingHeaders)
    }

    private mutating func compressed(_ buffer: ByteBuffer) throws(CompressionFailure) -> ByteBuffer {
        var output = ByteBuffer(bytes: isStarted ? [] : Self.header)
        isStarted = true
        let capacity = zlib_deflate_bound(buffer.readableBytes)
        let written = unsafe buffer.withUnsafeReadableBytes { bytes in
            checksum = unsafe crc32_z(checksum, bytes.baseAddress, bytes.count)
            return unsafe output.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity) { room in
                unsafe zlib_deflate(bytes.baseAddress, bytes.count, room.baseAddress, room.count)
            }
        }
        guard written > 0 else { throw CompressionFailure() }
        count &+= UInt32(truncatingIfNeeded: buffer.readableBytes)
        return output
    }
}

extension HTTPFields {
    /// Whether `Accept-Encoding` permits gzip (RFC 9110 §12.5.3).
    package var acceptsGzip: Bool {
        Self.listItems(self[.acceptEncoding] ?? "").contains { item in
            let parts = item.lowercased().split(separator: ";").map { $0.filter { $0 != " " } }
            guard parts.first == "gzip" else { return false }
            // A weight of 0 excludes the coding.
            return parts.dropFirst().allSatisfy { !$0.hasPrefix("q=") || $0.contains { ("1"..."9").contains($0) } }
        }
    }

    /// The items of a field that is a list.
    package static func listItems(_ field: String) -> [Substring] {
        field.split(separator: ",").map { item in
            var rest = item.drop { $0 == " " }
            while rest.last == " " { rest.removeLast() }
            return rest
        }
    }
}
