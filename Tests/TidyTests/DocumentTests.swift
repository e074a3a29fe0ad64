import Foundation
import Model
import Realms
import TestSupport
import Testing

@Suite struct DocumentTests {
    /// Topic → partitions.
    private static let catalogue = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })

    @Test func asyncAPINamesTheTopicsWithTheirPartitionsAndRetention() throws {
        let text = try #require(projectText("deploy/asyncapi.yaml"))
        let channels = try #require(
            text.split(separator: "\nchannels:\n").last?.split(separator: "\noperations:").first)
        var found: [String: Int] = [:]
        var retention: [String: Int64] = [:]
        var topic: String?
        for line in channels.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "}" })
            for (word, value) in zip(words, words.dropFirst()) {
                if word == "address:" { topic = String(value) }
                if word == "partitions:", let topic { found[topic] = Int(value) }
                if word == "retention.ms:", let topic { retention[topic] = Int64(value) }
            }
        }
        #expect(found == Self.catalogue)
        #expect(
            retention
                == Dictionary(
                    uniqueKeysWithValues: Topics.all.map { ($0.name, $0.retention.components.seconds * 1_000) }))
        for topic in Topics.all {
            for kind in topic.kinds {
                #expect(text.contains("      \(kind.rawValue): { $ref: \"#/components/messages/\(kind.rawValue)\" }"))
                #expect(text.contains(EventHeaders.type(of: kind)))
            }
            for group in topic.consumers { #expect(channels.contains("Read by \(group).")) }
        }
    }

    @Test func asyncAPINamesTheHeaders() throws {
        let text = try #require(projectText("deploy/asyncapi.yaml"))
        let names = [
            EventHeaders.specVersion, EventHeaders.id, EventHeaders.source, EventHeaders.type, EventHeaders.time,
            EventHeaders.subject, EventHeaders.partitionKey, EventHeaders.contentType, EventHeaders.traceParent,
            EventHeaders.position, EventHeaders.editPosition, EventHeaders.generation, EventHeaders.epoch,
        ]
        for name in names { #expect(text.contains("\n        \(name):"), "\(name)") }
    }

    /// The rows of the table of docs/topics.md: `| `name` | … | partitions | … |`.
    @Test(.enabled(if: projectText("docs/topics.md") != nil)) func theDocumentNamesTheTopicsWithTheirPartitions() throws
    {
        let text = try #require(projectText("docs/topics.md"))
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let heading = try #require(
            lines.firstIndex { $0.hasPrefix("#") && $0.drop { $0 == "#" || $0 == " " }.hasPrefix("Topics") },
            "docs/topics.md has no heading Topics")
        let section = lines[(heading + 1)...].prefix { !$0.hasPrefix("#") }
        let rows = section.filter { $0.hasPrefix("|") }.map { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
        }
        let column = try #require(rows.first?.firstIndex(of: "partitions"), "the table has no column partitions")
        var found: [String: Int] = [:]
        for row in rows.dropFirst(2) { found[row[0]] = Int(row[column]) }
        #expect(found == Self.catalogue)
    }

    @Test func theProgramsSchemaIsTheNewestFile() throws {
        let folder = projectFolder.appendingPathComponent("deploy/schema").path
        let numbers = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".sql") }
            .map { Int32($0.prefix(3)) }
        #expect(numbers.compactMap(\.self).max() == Schema.version)
    }

    /// A script that is not executable, or that goes on after a failure, is found here and not on somebody's laptop.
    @Test(arguments: ["deploy/up", "deploy/test", "deploy/failover-test", ".ci/run"])
    func scriptsStopAtTheFirstFailure(path: String) throws {
        let text = try #require(projectText(path))
        #expect(text.hasPrefix("#!/usr/bin/env bash\n"))
        #expect(text.contains("\nset -euo pipefail\n"))
        #expect(FileManager.default.isExecutableFile(atPath: projectFolder.appendingPathComponent(path).path))
    }
}
