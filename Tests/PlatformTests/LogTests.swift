import Essentials
import FoundationEssentials
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import Telemetry

@Suite(.ownThreads) struct LogTests {
    /// Returns the lines that `body` logs.
    private func lines(
        _ format: LineLogHandler.Format = .json, level: Logger.Level = .info,
        names: EnvironmentNames = EnvironmentNames(), _ body: (Logger) -> Void
    ) throws -> [String] {
        var ends: [Int32] = [0, 0]
        try #require(unsafe pipe(&ends) == 0)
        let descriptor = ends[1]
        body(
            Logger(label: "test") {
                LineLogHandler(
                    label: $0, service: "test", level: level, format: format, descriptor: descriptor,
                    environmentNames: names)
            })
        close(ends[1])
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(ends[0], $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        close(ends[0])
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    static let hostile = [
        "plain", "", "\"quoted\" \\ back", "line\nbreak\r\ttab", "\u{0}\u{1}\u{1F}\u{7F}", "\u{2028}\u{2029}", "æøå 🙂",
        "{\"level\":\"critical\"}", "\u{1B}[2J",
    ]

    @Test(arguments: hostile) func hostileTextStaysInItsString(text: String) throws {
        let lines = try lines {
            $0.info("\(text)", metadata: ["value": "\(text)", "\(text)k": ["nested": ["\(text)"]]])
        }
        try #require(lines.count == 1)
        let object = try JSONDecoder().decode([String: String].self, from: Data(lines[0].utf8))
        #expect(object["message"] == text && object["value"] == text && object["\(text)k.nested"] == text)
        #expect(object["service"] == "test" && object["level"] == "info")
        #expect(
            try lines.allSatisfy { line in
                try #require(line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }); return true
            })
    }

    @Test func metadataCannotPoseAsTheLineItself() throws {
        let lines = try lines { $0.info("true", metadata: ["message": "false", "level": "critical", "time": "never"]) }
        let object = try JSONDecoder().decode([String: String].self, from: Data(lines[0].utf8))
        #expect(object["message"] == "true" && object["metadata.message"] == "false" && object["level"] == "info")
    }

    /// The first line with an unknown environment ends the wait of the thread that loads the names.
    @Test func unknownEnvironmentEndsWait() async throws {
        let names = EnvironmentNames()
        names.waitUntilIncomplete()
        names.replace(with: [7: "acme"])
        let waitCount = Mutex(0)
        let unknown = 8...27
        // It waits again after each load, before most of the lines.
        startThread(named: "names") {
            for _ in unknown {
                names.waitUntilIncomplete()
                names.replace(with: [7: "acme"])
                waitCount.withLock { $0 += 1 }
            }
        }
        for (loadCount, number) in unknown.enumerated() {
            _ = try lines(names: names) { $0.info("a", metadata: ["environment": "7"]) }
            #expect(waitCount.withLock { $0 } == loadCount)
            _ = try lines(names: names) { $0.info("a", metadata: ["environment": "\(number)"]) }
            try #require(await eventually { waitCount.withLock { $0 } == loadCount + 1 })
        }
    }

    /// An unknown environment requests that the names are loaded, once.
    @Test func environmentHasItsName() throws {
        let names = EnvironmentNames()
        #expect(names.isIncomplete)
        names.replace(with: [7: "acme"])
        #expect(!names.isIncomplete)
        func name(_ environment: String) throws -> String? {
            let lines = try lines(names: names) { $0.info("a", metadata: ["environment": "\(environment)"]) }
            let object = try JSONDecoder().decode([String: String].self, from: Data(lines[0].utf8))
            #expect(object["environment"] == environment)
            return object["environmentName"]
        }
        #expect(try name("7") == "acme" && name("acme") == nil && !names.isIncomplete)
        #expect(try name("8") == nil && names.isIncomplete)
        names.replace(with: [7: "acme"])
        #expect(try name("8") == nil && !names.isIncomplete)
        #expect(try name("9") == nil && names.isIncomplete)
        names.replace(with: [7: "acme", 9: "books"])
        #expect(try name("9") == "books" && !names.isIncomplete)
    }

    @Test func lineLengthIsLimited() throws {
        let long = String(repeating: "é\n", count: 50_000)
        let many = Dictionary(uniqueKeysWithValues: (0..<500).map { ("key\($0)", Logger.MetadataValue.string(long)) })
        let lines = try lines { $0.info("\(long)", metadata: many) }
        try #require(lines.count == 1)
        #expect(lines[0].utf8.count < LineLogHandler.lineBytesMax + 100)
        struct Line: Decodable { let truncated: Bool }
        #expect(try JSONDecoder().decode(Line.self, from: Data(lines[0].utf8)).truncated)
    }

    @Test func controlCharactersAreReplacedInText() throws {
        let lines = try lines(.text) { $0.warning("red \u{1B}[31m\nnew", metadata: ["a": "\u{9B}1m"]) }
        #expect(
            lines.count == 1 && !lines[0].unicodeScalars.contains("\u{1B}")
                && !lines[0].unicodeScalars.contains("\u{9B}"))
    }

    @Test func lowerLevelsAreNotWritten() throws {
        #expect(try lines(level: .warning) { $0.info("no") }.isEmpty)
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_782_400_001, "2000-02-29T00:00:00.001Z"),
        (1_774_746_123_004, "2026-03-29T01:02:03.004Z"), (-1, "1969-12-31T23:59:59.999Z"),
        (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
    ])
    func timesAreRFC3339(milliseconds: Int64, text: String) {
        #expect(Timestamp(millisecondsSinceEpoch: milliseconds).description == text)
    }
}
