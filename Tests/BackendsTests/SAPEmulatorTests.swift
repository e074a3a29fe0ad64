import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import Sandbox

/// Behaviour of the sandbox towards clients that are less careful than the adapter.
@Suite(.ownThreads) struct SAPEmulatorTests {
    typealias Fixture = SAPFixture

    static let path = "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET/TimeSheetEntryCollection"
    static let authorization = ("Authorization", "Basic " + Data("FIELDPOST:sandbox".utf8).base64EncodedString())

    func login(_ sap: Fixture) async throws -> (token: String, session: Session) {
        let session = Session()
        let response = try await sap.client.send(
            Request(sap.url + Self.path, headers: [Self.authorization, ("x-csrf-token", "Fetch")], session: session))
        return (try #require(response.headers["x-csrf-token"]), session)
    }

    func post(_ sap: Fixture, _ json: String, token: String?, session: Session?) async throws -> Response {
        var headers = [Self.authorization]
        if let token { headers.append(("x-csrf-token", token)) }
        return try await sap.client.send(
            Request("POST", sap.url + Self.path, headers: headers, body: Array(json.utf8), session: session))
    }

    @Test func postWithoutOperationReturns201WithoutEffect() async throws {
        try await Fixture.run { sap in
            let (token, session) = try await login(sap)
            let json = #"{"PersonWorkAgreementExternalID": "O'ana", "CompanyCode": "1010"}"#
            #expect(try await post(sap, json, token: token, session: session).status == 201)
            let recorded = try await sap.recorded()
            #expect(recorded.isEmpty)
        }
    }

    @Test func tokenIsRejectedWithoutItsCookie() async throws {
        try await Fixture.run { sap in
            let (token, session) = try await login(sap)
            for (token, session) in [(token, nil), (nil, session), ("other", session), (token, Session())] {
                let response = try await post(sap, "{}", token: token, session: session)
                #expect(response.status == 403 && response.headers["x-csrf-token"] == "Required")
            }
            #expect(try await post(sap, "{}", token: token, session: session).status == 201)
        }
    }

    @Test func orderByIsIgnoredAndLessThanBehavesAsLessOrEqual() async throws {
        try await Fixture.run { sap in
            for day in ["2015-03-03", "2015-03-01", "2015-03-02"] {
                _ = try await sap.backend.create(Fixture.submission(on: day))
            }
            let filter = "TimeSheetDate%20lt%20datetime'2015-03-02T00:00:00'"
            let query = "?$filter=\(filter)&$orderby=TimeSheetDate&$inlinecount=allpages"
            let response = try await sap.client.send(
                Request(sap.url + Self.path + query, headers: [Self.authorization]))
            let body = String(decoding: response.body, as: UTF8.self)
            #expect(response.status == 200 && !body.contains("__count"))
            let dates = body.split(separator: "\"TimeSheetDate\":\"").dropFirst().map { $0.prefix { $0 != "\"" } }
            #expect(dates == ["/Date(1425168000000)/", "/Date(1425254400000)/"])
            #expect(body.contains("\"RecordedHours\":\"1.50\""))
        }
    }

    @Test func acknowledgedRecordsSurviveRestart() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "fieldpost-\(UUID()).journal").path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        var ids: [String] = []
        let submissions = [Fixture.submission(), Fixture.submission(), Fixture.submission()]
        try await Fixture.run(state: path) { sap in
            try await sap.post("/sandbox/organisation", Fixture.organisation)
            for submission in submissions { ids.append(try await sap.backend.create(submission)) }
            try await sap.backend.delete(ids[1], of: Fixture.ana, before: .never)
        }
        // A crash in the middle of a line.
        let file = try #require(FileManager.default.contents(atPath: path))
        try (file + Data(#"{"records":{"_0":[{"number":4"#.utf8)).write(to: URL(filePath: path))
        try await Fixture.run(state: path) { sap in
            let statuses = try await sap.recorded().map(\.status)
            #expect(statuses == ["20", "60", "20"])
            #expect(try await sap.backend.readBack(ids[0], of: Fixture.ana)?.marker == submissions[0].marker)
            #expect(try await sap.backend.create(Fixture.submission()) == "000000000004")
        }
        try await Fixture.run(state: path) { sap in
            let recorded = try await sap.recorded()
            #expect(recorded.count == 4)
        }
    }

    /// Lines of records are frequent, so they are encoded without `Codable`, which decodes them.
    @Test(arguments: [false, true]) func encodedLineOfRecordsDecodesUnchanged(isFull: Bool) throws {
        let day = Day(daysSinceEpoch: 16_524)
        var record = SAPRecord(
            number: 7, person: "A\"1\\", companyCode: "1010", date: day, hundredths: 150, note: "a\nb 🌍",
            wbsElement: "P1.1", activityType: "", status: .approved, releasedOnSave: true)
        if isFull {
            (record.assignments, record.predecessor) = (["WorkItem": "W", "InternalOrder": "\t"], 6)
            (record.rejectionReason, record.hoursText) = ("0001", "x")
        }
        let line = Data(SAPState.Line.json(of: [record, record]).bytes)
        guard case .records(let read) = try JSONDecoder().decode(SAPState.Line.self, from: line) else {
            Issue.record("the line is not decoded as records")
            return
        }
        #expect(read == [record, record])
    }

    @Test(arguments: [#"{"latency": 3}"#, #"{"rate503": 1.5}"#, #"{"latencyMs": -1}"#, "[]", "{"])
    func invalidSwitchesAreRejected(json: String) async throws {
        try await Fixture.run { sap in
            let response = try await sap.client.send(
                Request("POST", sap.url + "/sandbox/switches", body: Array(json.utf8)))
            #expect(response.status == 400)
        }
    }
}
