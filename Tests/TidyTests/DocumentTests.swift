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
        for header in EventHeaders.all { #expect(text.contains("\n        \(header.name):"), "\(header.name)") }
    }

    @Test func theProgramsSchemaIsTheNewestFile() throws {
        let folder = projectFolder.appendingPathComponent("deploy/schema").path
        let numbers = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".sql") }
            .map { Int32($0.prefix(3)) }
        #expect(numbers.compactMap(\.self).max() == Schema.version)
    }

    /// A script that is not executable, or that goes on after a failure, is found here and not on somebody's laptop.
    @Test(arguments: ["deploy/up", "deploy/test", "deploy/docs", "deploy/failover-test", ".ci/run"])
    func scriptsStopAtTheFirstFailure(path: String) throws {
        let text = try #require(projectText(path))
        #expect(text.hasPrefix("#!/usr/bin/env bash\n"))
        #expect(text.contains("\nset -euo pipefail\n"))
        #expect(FileManager.default.isExecutableFile(atPath: projectFolder.appendingPathComponent(path).path))
    }
}
