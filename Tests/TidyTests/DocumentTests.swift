import Foundation
import Model
import ObjectStore
import ProjectDocuments
import TestSupport
import Testing
import Yams

@Suite struct DocumentTests {
    /// Topic → partitions.
    private static let catalogue = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })

    @Test func asyncAPINamesTheTopicsWithTheirPartitionsAndRetention() throws {
        let document = try ProjectDocument("deploy/asyncapi.yaml").root
        let channels = try #require(document["channels"])
        var found: [String: Int] = [:]
        var retention: [String: Int64] = [:]
        for (_, channel) in channels.members {
            let topic = try #require(channel["address"]?.string)
            let kafka = channel["bindings"]?["kafka"]
            found[topic] = kafka?["partitions"]?.int
            retention[topic] = kafka?["topicConfiguration"]?["retention.ms"]?.int.map(Int64.init)
        }
        #expect(found == Self.catalogue)
        #expect(
            retention
                == Dictionary(
                    uniqueKeysWithValues: Topics.all.map { ($0.name, $0.retention.components.seconds * 1_000) }))
        for topic in Topics.all {
            let channel = try #require(channels[topic.name])
            let messages = channel["messages"]?.members.compactMap { $0.value["$ref"]?.string } ?? []
            #expect(Set(messages) == Set(topic.kinds.map { "#/components/messages/\($0.rawValue)" }))
            #expect(channel["x-realms"]?.names == Set(topic.kinds.map(\.rawValue)))
            for (kind, realms) in topic.sources {
                #expect(channel["x-realms"]?[kind.rawValue]?.texts == Set(realms), "\(kind)")
            }
            let description = channel["description"]?.string ?? ""
            for group in topic.consumers { #expect(description.contains("Read by \(group).")) }
        }
        let types = document["components"]?["schemas"]?["Headers"]?["properties"]?["ce_type"]?["enum"]?.texts
        #expect(types == Set(Topics.all.flatMap(\.kinds).map(EventHeaders.type)))
    }

    @Test func asyncAPINamesTheHeaders() throws {
        let schemas = try ProjectDocument("deploy/asyncapi.yaml").root["components"]?["schemas"]
        #expect(schemas?["Headers"]?["properties"]?.names == Set(EventHeaders.all.map(\.name)))
    }

    @Test func schemaVersionMatchesTheNewestFile() throws {
        let folder = projectFolder.appendingPathComponent("deploy/schema").path
        let numbers = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".sql") }
            .map { Int32($0.prefix(3)) }
        #expect(numbers.compactMap(\.self).max() == Schema.version)
    }

    /// Every script is executable and exits at its first failure.
    @Test(arguments: [
        "deploy/up", "deploy/test", "deploy/check", "deploy/docs", "deploy/package", "deploy/package-trial",
        "deploy/images", "deploy/up-containers", "deploy/release", "deploy/compose-test", "deploy/kube-test",
        "deploy/backup-test", "deploy/host-test", "deploy/failover-test", "deploy/kill-test", "deploy/converge-test",
        "deploy/rehearse", ".ci/run",
    ])
    func scriptsStopAtTheFirstFailure(path: String) throws {
        let text = try #require(projectText(path))
        #expect(text.hasPrefix("#!/usr/bin/env bash\n"))
        #expect(text.contains("\nset -euo pipefail\n"))
        #expect(FileManager.default.isExecutableFile(atPath: projectFolder.appendingPathComponent(path).path))
    }
}
