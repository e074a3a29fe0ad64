import Foundation
import HTTPClient
import Model
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// An environment moves between two installations while its devices send mutations.
@Suite(.ownThreads) struct GatewayMoveTests {
    private static let deviceCount = 10
    private static let mutationCount = 400
    private static let objectCount: Int64 = 20_000
    private static let kinds = """
        {"kinds": {"Form": {"realms": ["user"], "properties": {"text": {"type": "string"}},
            "permissions": [{"who": ["owner"], "may": ["create", "change"]}]}}}
        """
    private let key = Data(repeating: 3, count: 32).base64EncodedString()

    /// One device's results, and its longest time without a usable response.
    private struct DeviceRun: Sendable {
        /// The result of each mutation.
        var responses: [String] = []
        var atOldCount = 0
        var longest = Duration.zero
    }

    private func run(_ fixture: GatewayFixture, _ arguments: String...) throws -> TestSupport.CommandResult {
        try fieldpost(
            ["environment"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": fixture.database, "FIELDPOST_SECRET_KEYS": GatewayFixture.secretKey,
                "KEY": key,
            ])
    }

    private func output(_ response: TestSupport.CommandResult) throws -> String {
        try #require(response.status == 0, "\(response.errors)")
        return response.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Sends mutations one by one: retries each until it has a result, and follows the redirect to the new
    /// installation.
    private func work(
        _ device: GatewayDevice, _ old: GatewayFixture, _ new: GatewayFixture, _ accepted: SharedCount
    ) async throws -> DeviceRun {
        var run = DeviceRun()
        var target = old
        for number in 0..<Self.mutationCount {
            let kind = number % 2 == 0 ? "TimeEntry" : "Form"
            let mutation = await device.mutation("put", UUID(), #"{"text":"x"}"#, kind: kind)
            let body = "{\"clientId\":\"\(device.clientID)\",\"mutations\":[\(mutation)]}"
            let start = ContinuousClock.now
            while true {
                try #require(start.duration(to: .now) < patienceMax, "no response")
                let response = GatewayResponse(
                    try await target.client.send(
                        Request(
                            "POST", target.url("/v1/mutations"),
                            headers: [
                                ("Authorization", "Bearer \(device.token)"), ("Content-Type", "application/json"),
                            ], body: Array(body.utf8), totalMax: patienceMax)))
                if response.status == 200 {
                    run.responses.append(try #require(response.results.first))
                    break
                }
                if response.status == 421 {
                    #expect(response.problem == "environment-moved")
                    target = new
                } else {
                    try #require(response.status >= 500 || response.status == 401, "\(response)")
                }
                try await Task.sleep(for: .milliseconds(20))
            }
            run.longest = max(run.longest, start.duration(to: .now))
            if target.database == old.database { run.atOldCount += 1 }
            accepted.value.add(1, ordering: .relaxed)
        }
        return run
    }

    /// The export stream is interrupted twice, and resumes.
    private func move(from old: GatewayFixture, to new: GatewayFixture) throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("stream")
            var resume: [String] = []
            for bytes in [700_000, 1_500_000, Int.max] {
                let exported = try fieldpost(
                    ["environment", "export", "test", "--key-from", "KEY"] + resume,
                    environment: [
                        "FIELDPOST_DATABASE_URL": old.database, "FIELDPOST_SECRET_KEYS": GatewayFixture.secretKey,
                        "KEY": key,
                    ])
                try #require(exported.status == 0, "\(exported.errors)")
                try Data(exported.output.utf8.prefix(bytes)).write(to: file)
                let imported = try run(new, "import", file.path, "--key-from", "KEY")
                guard bytes < Int.max else {
                    let permission = try output(
                        run(
                            old, "cut-over", "test", output(imported), "--to", new.url(""), "--key-from", "KEY"))
                    _ = try output(run(new, "activate", "test", permission, "--key-from", "KEY"))
                    return
                }
                #expect(imported.status != 0)
                let words = imported.errors.split { $0 == " " || $0 == "\n" }
                resume = ["--resume", String(try #require(words.last))]
            }
        }
    }

    @Test func devicesContinueTheirQueuesAfterTheMove() async throws {
        try await withGateway { old in
            let jwks = old.keys.jwks
            try await withGateway(fetch: { _ in jwks }) { new in
                try new.withDatabase { connection in
                    for table in ["access.domain", "access.provider", "realm.relay", "realm.environment"] {
                        try connection.run("DELETE FROM \(Statement(stringLiteral: table))")
                    }
                    // The number that the kind has at the old installation.
                    try connection.run("INSERT INTO realm.kind (number, name) VALUES (1000, 'Elsewhere')")
                }
                try old.apply(Self.kinds)
                let realm = try old.realm(.common)
                try old.withDatabase { connection in
                    _ = try connection.run([
                        "UPDATE realm.environment SET position = position + \(Self.objectCount)",
                        """
                        INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position,
                            edit_position, deleted, fields)
                        SELECT 1, \(realm), \(Kind.team), gen_random_uuid(), n, 0, n, false, '{"name":"' || n || '"}'
                        FROM generate_series(1, \(Self.objectCount)) AS n
                        """,
                    ])
                }
                let accepted = SharedCount()
                let reader = try await GatewayDevice(old, "p0@example.com")
                try await reader.sync()
                let runs = try await withThrowingTaskGroup(of: DeviceRun.self) { group in
                    for number in 0..<Self.deviceCount {
                        let device = try await GatewayDevice(old, "p\(number)@example.com")
                        group.addTask { try await work(device, old, new, accepted) }
                    }
                    try await eventually("devices are sending") { accepted.value.load(ordering: .relaxed) > 100 }
                    try await withOwnThread { try move(from: old, to: new) }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                try expectEachOnce(runs, old, new)
                // A cursor of the old installation.
                let moved = try await GatewayDevice(reader, at: new, token: reader.token)
                try await moved.sync()
                #expect(try await moved.shown(moved.realm) == new.stored(moved.realm))
                #expect(await moved.resets.count == reader.resets.count + 1)
                let put = await moved.mutation("put", UUID(), #"{"text":7}"#, kind: "Form")
                #expect(try await moved.send([put]).results[0].hasPrefix("invalid-field"))
                print("the longest pause of a device was \(runs.map(\.longest).max() ?? .zero)")
            }
        }
    }

    private func expectEachOnce(_ runs: [DeviceRun], _ old: GatewayFixture, _ new: GatewayFixture) throws {
        let total = Self.deviceCount * Self.mutationCount
        #expect(runs.map(\.responses.count).reduce(0, +) == total)
        #expect(Set(runs.flatMap(\.responses)).count == total)
        #expect(runs.flatMap(\.responses).allSatisfy { $0.hasPrefix("accepted") })
        let atOld = runs.map(\.atOldCount).reduce(0, +)
        #expect(atOld > 100 && atOld < total)
        let count = { (fixture: GatewayFixture, text: Statement) in
            try fixture.withDatabase { try $0.run(text)[0].decode(Int64.self) }
        }
        let entries: Statement = """
            SELECT count(*) FROM store.object WHERE kind = \(Kind.timeEntry)
                OR kind = (SELECT number FROM realm.kind WHERE name = 'Form')
            """
        #expect(try count(new, entries) == total)
        #expect(try count(new, "SELECT count(*) FROM store.object WHERE kind = 1001") == total / 2)
        #expect(try count(new, "SELECT count(*) FROM device.mutation") == total)
        #expect(try count(old, entries) == atOld)
        #expect(try count(new, "SELECT count(*) FROM store.object WHERE kind = \(Kind.team)") == Self.objectCount)
    }
}

/// The number of accepted mutations of all devices.
private final class SharedCount: Sendable {
    let value = Atomic<Int>(0)
}
