import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

/// Behaviour of the sandbox towards clients that are less careful than the adapter.
@Suite(.ownThreads) struct EconomicEmulatorTests {
    typealias Fixture = EconomicFixture

    private func send(_ method: String, _ path: String, _ json: String = "", to economic: Fixture) async throws
        -> Response
    {
        try await economic.client.send(
            Request(
                method, economic.url + "/api/v20.0.0" + path,
                headers: [("X-AppSecretToken", "sandbox-app"), ("X-AgreementGrantToken", "sandbox-grant")],
                body: json.isEmpty ? nil : Array(json.utf8)))
    }

    private func text(_ response: Response) -> String { String(decoding: response.body, as: UTF8.self) }

    @Test func falseAndNullAreOmitted() async throws {
        try await Fixture.run { economic in
            _ = try await economic.backend.create(Fixture.submission())
            let entry = text(try await send("GET", "/timeentries/1", to: economic))
            #expect(!entry.contains("isApproved") && entry.contains("\"numberOfHours\":1.5,"))
            let page = text(try await send("GET", "/timeentries", to: economic))
            #expect(!page.contains("cursor"))
        }
    }

    @Test func putNeedsCurrentVersion() async throws {
        try await Fixture.run { economic in
            _ = try await economic.backend.create(Fixture.submission())
            let entry =
                #"{"number": 1, "employeeNumber": 7, "projectNumber": 11, "activityNumber": 1, "date": "2015-03-30""#
            #expect(try await send("PUT", "/timeentries", entry + "}", to: economic).status == 400)
            let other = entry + #", "objectVersion": "v1.1"}"#
            let response = try await send("PUT", "/timeentries", other, to: economic)
            #expect(response.status == 409 && text(response).contains("Version does not match"))
        }
    }

    @Test(arguments: [
        "name$eq:x", "date$like:2015", "(date$eq:x)", "date", "employeeNumber$in:[1,2]", "text$eq:a$$b",
    ]) func unsupportedFilterIsRejected(filter: String) async throws {
        try await Fixture.run { economic in
            let escaped = filter.utf8.map { "%" + String($0, radix: 16) }.joined()
            let response = try await send("GET", "/timeentries?filter=" + escaped, to: economic)
            #expect(response.status == 400)
        }
    }

    /// A row that is deleted while pages are read hides no other row.
    @Test func pageBeginsWithRowOfItsCursor() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"pageItemsMax": 2}"#)
            for _ in 0..<5 { _ = try await economic.backend.create(Fixture.submission()) }
            let first = text(try await send("GET", "/timeentries", to: economic))
            #expect(first.contains("\"cursor\":\"3\""))
            try await economic.change(#"{"number": 1, "isDeleted": true}"#)
            let page = text(try await send("GET", "/timeentries?Cursor=3", to: economic))
            #expect(page.contains("\"number\":3,") && page.contains("\"number\":4,"))
            #expect(page.contains("\"cursor\":\"5\""))
        }
    }

    @Test func listingShowsChangesLateAndSingleEntryImmediately() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            // Longer than the test runs.
            try await economic.switches(#"{"visibleAfterMs": 600000}"#)
            let day = SAPFixture.day("2015-03-30")
            func listed() async throws -> [Int] {
                try await economic.backend.entries(of: Fixture.ana, from: day, through: day).map(\.durationSeconds)
            }
            _ = try await economic.backend.update(id, to: Fixture.submission(seconds: 7200))
            let late = try await economic.backend.create(Fixture.submission(seconds: 3600))
            #expect(try await listed() == [5400])
            #expect(try await economic.backend.readBack(id, of: Fixture.ana)?.durationSeconds == 7200)
            #expect(try await economic.backend.readBack(late, of: Fixture.ana)?.durationSeconds == 3600)
            try await economic.switches(#"{"visibleAfterMs": 0}"#)
            try await economic.change(#"{"number": 2, "text": "seen"}"#)
            #expect(try await listed() == [5400, 3600])
        }
    }

    @Test func clockOfLastUpdatedMayBeWrong() async throws {
        try await Fixture.run { economic in
            func version() async throws -> String {
                let id = try await economic.backend.create(Fixture.submission())
                return try #require(try await economic.backend.readBack(id, of: Fixture.ana)?.version)
            }
            try await economic.switches(#"{"clockSkewSeconds": -600}"#)
            let early = try await version()
            try await economic.switches(#"{"clockSkewSeconds": 600}"#)
            #expect(try await version() > early)
        }
    }

    @Test func acknowledgedEntriesSurviveRestart() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "fieldpost-\(UUID()).journal").path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await Fixture.run(state: path) { economic in
            try await economic.post("/sandbox/organisation", Fixture.organisation)
            for _ in 0..<2 { _ = try await economic.backend.create(Fixture.submission()) }
            try await economic.backend.delete("1", of: Fixture.ana, before: .never)
        }
        try await Fixture.run(state: path) { economic in
            let deleted = try await economic.recorded().map(\.isDeleted)
            #expect(deleted == [true, false])
            let next = try await economic.backend.create(Fixture.submission())
            #expect(next == "3")
        }
    }

    @Test(arguments: [#"{"latency": 3}"#, #"{"rate503": 1.5}"#, #"{"pageItemsMax": 0}"#, #"{"visibleAfterMs": -1}"#])
    func invalidSwitchesAreRejected(json: String) async throws {
        try await Fixture.run { economic in
            let response = try await economic.client.send(
                Request("POST", economic.url + "/sandbox/switches", body: Array(json.utf8)))
            #expect(response.status == 400)
        }
    }
}
