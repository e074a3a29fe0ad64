import Foundation
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import TestSupport
import Testing

/// `GzipWriter` against the program `gzip`.
@Suite(.ownThreads) struct GzipTests {
    private final class Output: Sendable {
        private let bytes = Mutex<[UInt8]>([])
        var data: Data { Data(bytes.withLock { $0 }) }
        func append(_ buffer: ByteBuffer) { bytes.withLock { $0 += buffer.readableBytesView } }
    }

    private struct Writer: ResponseBodyWriter {
        let output: Output
        func write(_ buffer: ByteBuffer) async throws { output.append(buffer) }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    /// Returns what `gzip` makes of a stream, and its exit status; an incomplete stream has status 1.
    private func decompressed(_ data: Data) throws -> (text: String, status: Int32) {
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream.gz")
            try data.write(to: file)
            // A file, not a pipe: a server that another test starts at the same moment would keep a pipe open.
            let result = folder.appendingPathComponent("text")
            try Data().write(to: result)
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = ["gzip", "-dcq", file.path]
            process.standardOutput = try FileHandle(forWritingTo: result)
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return (try String(contentsOf: result, encoding: .utf8), process.terminationStatus)
        }
    }

    @Test func eachWriteCanBeReadAtOnce() async throws {
        let output = Output()
        var writer = GzipWriter(Writer(output: output))
        var expected = ""
        let parts = [
            "{\"a\":1}\n", String(repeating: "0123456789abcdef", count: 40_000), "",
            String((0..<200_000).map { _ in Character(Unicode.Scalar(UInt8.random(in: 32..<127))) }),
        ]
        for part in parts {
            try await writer.write(ByteBuffer(string: part))
            expected += part
            #expect(try decompressed(output.data).text == expected)
        }
        try await writer.write(contentsOf: [ByteBuffer(string: "x"), ByteBuffer(string: "y")])
        try await writer.finish(nil)
        let (text, status) = try decompressed(output.data)
        #expect(text == expected + "xy" && status == 0)
    }

    @Test func emptyBodyIsAStream() async throws {
        let output = Output()
        let writer = GzipWriter(Writer(output: output))
        try await writer.finish(nil)
        let (text, status) = try decompressed(output.data)
        #expect(text.isEmpty && status == 0)
    }

    @Test(arguments: [
        ("", false), ("gzip", true), ("br, GZIP;q=0.5", true), ("gzip;q=0", false), ("gzip; q=0.0", false),
        ("x-gzip2", false), ("identity", false),
    ])
    func weightOfZeroExcludesGzip(field: String, isAccepted: Bool) {
        let fields: HTTPFields = [.acceptEncoding: field]
        #expect(fields.acceptsGzip == isAccepted)
    }
}
