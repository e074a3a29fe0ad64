import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// The poller follows changes in e-conomic, whose clocks are wrong and whose records become visible late, page by
    /// page, and is killed repeatedly. All changes reach the people before a full comparison, and the full comparison
    /// writes nothing.
    @Test(.timeLimit(.minutes(20)), arguments: Seeds.random(1, for: "wrong clocks of e-conomic"))
    func economicChangesArriveDespiteWrongClocks(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var options = LocalCluster.Options.withPoller
        options.emulators.append(.economic)
        try await withCluster("economic-poller", options) { cluster in
            let flow = try await EconomicPollerFlow(cluster)
            defer { flow.client.shutDown() }
            let skew = [-600, 600].randomElement(using: &random) ?? 0
            try await flow.switches(
                #"{"clockSkewSeconds": \#(skew), "pageItemsMax": 3, "latencyMs": 100, "visibleAfterMs": 700}"#)
            let killer = Killer(cluster: cluster, parts: [.poller], seed: seed, pause: .seconds(2))
            async let kills: Void = killer.kill(5)
            var hours: [Int: Int] = [:]
            for index in 0..<60 {
                if index < 20 || Bool.random(using: &random) {
                    let number = try await flow.create(of: 7 + index % 2)
                    hours[number] = 1
                } else if let number = hours.keys.sorted().randomElement(using: &random) {
                    let changed = Int.random(in: 1...12, using: &random)
                    try await flow.change(
                        #"{"number": \#(number), "numberOfHours": \#(changed), "isApproved": true}"#)
                    hours[number] = changed
                }
                try await Task.sleep(for: .milliseconds(150))
            }
            try await kills
            try await eventually("all records are entries") { try flow.difference(hours) }
            // Quiescent: repeated changes write nothing.
            try await flow.waitForRuns(2)
            let position = try flow.position()
            try await flow.waitForRuns(2)
            #expect(try flow.position() == position, "seed \(seed)")
            // The full comparison finds no missed change except the authors of deletions.
            try await flow.waitForFullRun()
            #expect(try flow.position() == position, "seed \(seed)")
            let gone = try #require(hours.keys.min())
            try await flow.change(#"{"number": \#(gone), "isDeleted": true}"#)
            hours[gone] = nil
            try await eventually("a deleted record's entry is gone") {
                try flow.difference(hours)
            }
        }
    }
}

/// Two people whose e-conomic is polled every five seconds, and compared in full on request only.
private struct EconomicPollerFlow: Sendable {
    private static let environment = "books"

    let cluster: LocalCluster
    let client = Client()
    private let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day

    init(_ cluster: LocalCluster) async throws {
        self.cluster = cluster
        try await post(
            "/sandbox/organisation",
            """
            {"employees": [{"number": 7, "name": "Ana"}, {"number": 8, "name": "Bo"}],
             "projects": [{"number": 11, "name": "Roof"}],
             "activities": [{"number": 1, "name": "Thatching", "isAccessible": true}]}
            """)
        let people = cluster.folder.path + "/people.json"
        try Data(
            """
            [{"email": "ana@example.com", "reference": {"employeeNumber": "7"}},
             {"email": "bo@example.com", "reference": {"employeeNumber": "8"}}]
            """.utf8
        ).write(to: URL(filePath: people))
        try await cluster.runCommand([
            "environment", "add", Self.environment, "--domain", "example.com", "--issuer", cluster.identityURL,
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "economic",
            "--backend-url", cluster.economicURL, "--backend-password-variable", LocalCluster.tokensVariable,
            "--people", people, "--poll-interval", "5", "--full-poll-interval", "604800",
        ])
        try await cluster.runCommand(["environment", "invite", "--all"])
        try await eventually("both are compared in full, and changes are followed") {
            var connection = try Connection(cluster.conninfo)
            let count = try connection.run(
                "SELECT (SELECT count(*) FROM poll.finished) + (SELECT count(*) FROM poll.watermark)")[0]
                .value(0, as: Int64.self)
            return count == 4 ? nil : "\(count)"
        }
    }

    // MARK: Acting

    func switches(_ json: String) async throws { try await post("/sandbox/switches", json) }

    func change(_ json: String) async throws { try await post("/sandbox/entries", json) }

    /// - Returns: The record's number.
    func create(of employee: Int) async throws -> Int {
        struct Created: Decodable { let number: Int }
        let body = try await post(
            "/sandbox/entries",
            """
            {"employeeNumber": \(employee), "projectNumber": 11, "activityNumber": 1, "date": "\(today)",
             "numberOfHours": 1, "text": "elsewhere"}
            """)
        return try JSONDecoder().decode(Created.self, from: body).number
    }

    @discardableResult
    private func post(_ path: String, _ json: String) async throws -> Data {
        Data(try await RemoteEmulator(url: cluster.economicURL, client: client).post(path, json).body)
    }

    // MARK: Reading

    /// The differences between entries and records' hours, if any.
    func difference(_ hours: [Int: Int]) throws -> String? {
        var connection = try Connection(cluster.conninfo)
        var found: [Int: Int] = [:]
        let rows = try connection.run(
            """
            SELECT fields->>'backendId', (fields->>'durationSeconds')::int FROM realm.object
            WHERE kind = 'TimeEntry' AND NOT deleted
            """)
        for row in rows { found[Int(try row.value(0, as: String.self)) ?? 0] = Int(try row.value(1, as: Int32.self)) }
        let expected = hours.mapValues { $0 * 3_600 }
        guard found != expected else { return nil }
        let missing = expected.filter { found[$0.key] != $0.value }
        return "\(missing.count) of \(expected.count) missing: \(missing); there are \(found.count)"
    }

    /// The newest position of what was seen of records, and of their entries; a full comparison may find people other
    /// suggestions too.
    func position() throws -> Int64 {
        var connection = try Connection(cluster.conninfo)
        return try connection.run(
            "SELECT max(position) FROM realm.object WHERE kind IN ('SeenRecord', 'TimeEntry', 'TimeEntryStatus')")[0]
            .value(0)
    }

    /// Waits until that many more runs of changes are done.
    func waitForRuns(_ count: Int64) async throws {
        let first = try finishedRun("max")
        try await eventually("\(count) runs are done") {
            let now = try finishedRun("max")
            return now >= first + count ? nil : "\(first), now \(now)"
        }
    }

    /// Makes a full comparison due in each run, and waits until both people's is done.
    func waitForFullRun() async throws {
        let run = try finishedRun("max")
        try await cluster.runCommand(["environment", "edit", Self.environment, "--full-poll-interval", "5"])
        try await eventually("all people are compared in full") {
            let now = try finishedRun("min")
            return now > run ? nil : "\(run), now \(now)"
        }
    }

    /// The last run (`max`), or the oldest last run of a poll (`min`), that is done.
    private func finishedRun(_ which: String) throws -> Int64 {
        var connection = try Connection(cluster.conninfo)
        return try connection.run("SELECT CASE \(which) WHEN 'min' THEN min(run) ELSE max(run) END FROM poll.finished")[
            0
        ].value(0)
    }
}
