import Backends
import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// A pattern that the compiler cannot forbid.
struct Ban: Sendable, CustomTestStringConvertible {
    let pattern: String
    var allowedIn: [String] = []
    let reason: String

    var testDescription: String { pattern }
}

@Suite struct BanTests {
    static let everywhere = [
        Ban(pattern: "import CPostgres", allowedIn: ["Shared/Clients/Postgres/"], reason: "one module per C library"),
        Ban(
            pattern: "import CKafka",
            allowedIn: ["Shared/Clients/Kafka/", "Tools/Sandbox/", "Tests/KafkaTests/", "Tests/TestSupport/"],
            reason: "one module per C library; the mock cluster is no client"),
        Ban(
            pattern: "import CZlib", allowedIn: ["Shared/Platform/HTTPServer/"], reason: "one module per C library"),
        Ban(pattern: "import CCurl", allowedIn: ["Shared/Clients/HTTPClient/"], reason: "one module per C library"),
        Ban(
            pattern: "FIELDPOST_KAFKA_FETCH",
            allowedIn: ["Tests/LagMonitorTests/ObservedProgram.swift", "Tests/TidyTests/"],
            reason: "the sandbox's broker needs no settings of its own"),
        Ban(
            pattern: "import CBroker", allowedIn: ["Tools/Sandbox/"], reason: "it changes the process's getsockname(2)"),
        Ban(
            pattern: " Application(",
            allowedIn: ["Tools/Sandbox/Emulator.swift"],
            reason: "a server whose channels are not held can end the process when it stops"),
        Ban(
            pattern: ".buildServer(",
            allowedIn: ["Shared/Platform/HTTPServer/HTTPListener.swift", "Tests/TidyTests/"],
            reason: "a server whose channels are not held can end the process when it stops"),
        Ban(pattern: ".http1(", reason: "HTTPServer has one whose channels are held"),
        Ban(pattern: "@unchecked Sendable", reason: "own it or lock it"),
        Ban(pattern: "nonisolated(unsafe)", reason: "own it or lock it"),
        Ban(pattern: "try!", reason: "an error is handled or thrown"),
        Ban(pattern: "as!", reason: "a cast that may fail is handled"),
        Ban(pattern: "Thread.sleep", reason: "wait for a condition"),
        Ban(pattern: "usleep(", reason: "wait for a condition"),
        Ban(pattern: ".prefix(64)", reason: "a text that is quoted is cut by scalars: `excerpt`"),
        Ban(pattern: "$0.checkpointCount ==", reason: "it passes: wait for a condition that stays"),
    ]

    @Test(arguments: everywhere) func bannedPatternsAreNotUsed(ban: Ban) {
        for file in SourceFile.all where !ban.allowedIn.contains(where: { file.path.hasPrefix($0) }) {
            for line in file.lines(with: ban.pattern) {
                Issue.record("\(file.path):\(line): \(ban.pattern): \(ban.reason)")
            }
        }
    }

    /// Test targets of the group `rules` in `deploy/test`: no test needs a server in its own process.
    static let withoutServers = [
        "BackendConnectionsTests", "CataloguesTests", "DeliveriesTests", "ModelTests", "SampleTests", "TidyTests",
    ]

    @Test func suitesUseTheirOwnThreads() {
        let folders = Self.withoutServers.map { "Tests/\($0)/" }
        for file in SourceFile.all where file.path.hasPrefix("Tests/") {
            if folders.contains(where: file.path.hasPrefix) { continue }
            for line in file.lines(with: "@Suite struct") {
                Issue.record("\(file.path):\(line): @Suite(.ownThreads), since a long test delays servers of others")
            }
        }
    }

    static let inRules = [
        Ban(pattern: "Date()", reason: "a rule reads no clock: the time comes in as a value"),
        Ban(pattern: "Clock", reason: "a rule reads no clock: the time comes in as a value"),
        Ban(pattern: "Date.now", reason: "a rule reads no clock: the time comes in as a value"),
        Ban(pattern: "random(", reason: "a rule has no randomness: what is random comes in as a value"),
        Ban(pattern: "UUID()", reason: "a rule has no randomness: ids come in as values"),
        Ban(pattern: "Connection", reason: "a rule does no input or output"),
        Ban(pattern: "async ", reason: "a rule does no input or output"),
    ]

    @Test(arguments: inRules) func rulesArePure(ban: Ban) {
        let rules = SourceFile.all.filter(\.isRule)
        #expect(rules.count > 8)
        for file in rules {
            for line in file.lines(with: ban.pattern) {
                Issue.record("\(file.path):\(line): \(ban.pattern): \(ban.reason)")
            }
        }
    }

    @Test func noServiceImportsAnother() {
        let services = Set(
            SourceFile.all.filter { $0.path.hasPrefix("Services/") }.compactMap { file in
                file.path.split(separator: "/").dropFirst().first.map(String.init)
            })
        #expect(services.count >= 6)
        for file in SourceFile.all where !file.path.hasPrefix("Tests/") {
            // The entry point of a service that is a library.
            for service in services where file.path != "Services/\(service)/Main/main.swift" {
                for line in file.lines(with: "import \(service)") where file.lines[line - 1].hasSuffix(service) {
                    Issue.record("\(file.path):\(line): what two services share is in Shared/")
                }
            }
        }
    }

    @Test func onlyEntryPointsImportArgumentParser() {
        for file in SourceFile.all
        where file.path.hasPrefix("Shared/") && !file.path.hasPrefix("Shared/Admin/CommandLineSupport/") {
            #expect(file.lines(with: "import ArgumentParser").isEmpty, "\(file.path): services have settings")
        }
    }
}
