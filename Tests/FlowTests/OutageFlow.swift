import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

/// A second environment, whose back end is e-conomic.
struct BooksFlow: Sendable {
    let cluster: LocalCluster
    private let entry: TimeEntry

    static let environment = "books"
    private static let email = "ana@books.example"

    /// Adds the environment, with one person.
    init(_ cluster: LocalCluster) async throws {
        self.cluster = cluster
        let organisation = """
            {"employees": [{"number": 7, "name": "Ana"}], "projects": [{"number": 11, "name": "Roof"}],
             "activities": [{"number": 1, "name": "Thatching", "isAccessible": true}]}
            """
        _ = try await RemoteEmulator.with(cluster.economicURL) {
            try await $0.post("/sandbox/organisation", organisation)
        }
        let people = cluster.folder.path + "/books.json"
        try Data(#"[{"email": "\#(Self.email)", "reference": {"employeeNumber": "7"}}]"#.utf8)
            .write(to: URL(filePath: people))
        try await cluster.runCommand([
            "environment", "add", Self.environment, "--domain", "books.example", "--issuer",
            "https://books.example", "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks",
            "--backend", "economic", "--backend-url", cluster.economicURL, "--backend-password-variable",
            LocalCluster.tokensVariable, "--people", people,
        ])
        try await cluster.runCommand(["environment", "invite", Self.email, "--environment", Self.environment])
        try await eventually("the second environment's realm is filled") {
            var writer = try RealmWriter(cluster.conninfo, environment: Self.environment)
            return try writer.initializedCount() == 1 ? nil : "not yet"
        }
        var connection = try Connection(cluster.conninfo)
        func id(_ kind: String, _ name: String) throws -> UUID {
            let rows = try connection.run(
                """
                SELECT o.id FROM realm.object o JOIN realm.environment e ON e.id = o.environment_id
                WHERE e.name = \(Self.environment) AND o.kind = \(kind) AND o.fields->>'name' = \(name)
                """)
            try #require(rows.count == 1)
            return try rows[0].value(0)
        }
        entry = TimeEntry(
            text: "roof", reportingTemplate: try id("ReportingTemplate", "Project time registration"),
            reporting: [
                ReportingSelection(
                    context: try id("ReportingContext", "Project"), node: try id("ReportingTreeNode", "Roof")),
                ReportingSelection(
                    context: try id("ReportingContext", "Activity"), node: try id("ReportingTreeNode", "Thatching")),
            ], entryDate: Day("2015-03-30"), durationSeconds: 3_600, submitRequested: true)
    }

    func submit(_ count: Int) throws {
        var writer = try RealmWriter(cluster.conninfo, environment: Self.environment)
        try writer.put((0..<count).map { _ in UUID() }, of: Self.email, entry)
    }

    func expectReleased(_ count: Int) async throws {
        try await eventually("\(count) entries are released in e-conomic") {
            var writer = try RealmWriter(cluster.conninfo, environment: Self.environment)
            let now = try writer.count(.released)
            return now == count ? nil : "\(now)"
        }
    }

    func behave(_ switches: String) async throws {
        try await RemoteEmulator.with(cluster.economicURL) { try await $0.switches(switches) }
    }

    /// The number of calls rejected by rate limits.
    func refusedCount() async throws -> Int {
        try await ScenarioBackend.economic.stats(cluster)["answered429"] ?? 0
    }

    /// Submits entries, and waits until all are released.
    ///
    /// - Returns: How many a second.
    func release(_ count: Int) async throws -> Double {
        var writer = try RealmWriter(cluster.conninfo, environment: Self.environment)
        let before = try writer.count(.released)
        let start = ContinuousClock.now
        try submit(count)
        try await expectReleased(before + count)
        return Double(count) / ((ContinuousClock.now - start) / .seconds(1))
    }

    /// The number of records in e-conomic, and of distinct ones.
    func recorded() async throws -> (all: Int, different: Int) {
        struct Record: Decodable { let text: String }
        let texts = try await RemoteEmulator.with(cluster.economicURL) { try await $0.recorded(as: Record.self) }
            .map(\.text)
        return (texts.count, Set(texts).count)
    }
}

/// A key of `fieldpost deferred list --json`.
struct ParkedRow: Decodable {
    let environment: String?
    let key: String
    let reason: String
    let state: String
    let attempts: Int
}

extension LocalCluster {
    /// The sums of a group's partitions as `fieldpost lag` prints them. Without a committed offset, all available
    /// messages count. A partition whose offsets are unknown counts as one message.
    func lag(of group: String) async throws -> (end: Int64, lag: Int64) {
        struct Row: Decodable { let end, lag: Int64? }
        let text = try await runCommand(["lag", "--group", group, "--json"])
        let rows = try JSONDecoder().decode([Row].self, from: Data(text.utf8))
        return rows.reduce(into: (0, 0)) { $0 = ($0.0 + ($1.end ?? 0), $0.1 + ($1.lag ?? 1)) }
    }

    func parked(_ environment: String) async throws -> [ParkedRow] {
        let text = try await runCommand(["deferred", "list", "--environment", environment, "--json"])
        return try JSONDecoder().decode([ParkedRow].self, from: Data(text.utf8))
    }

    /// The sum of a metric of a service over its label sets, of which there is at least one.
    func metric(_ name: String, of part: Part) async throws -> Double {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(Request(adminURL(part) + "/metrics"))
        let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        let values = lines.filter { $0.prefix { $0 != "{" && $0 != " " } == name }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
        try #require(!values.isEmpty, "\(part.name) does not export \(name)")
        return values.reduce(0, +)
    }
}
