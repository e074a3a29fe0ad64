import BackendProtocol
import Compass
import Essentials
import HTTPClient
import TestSupport
import Testing

@testable import Sandbox

/// Defects of the vendor's sample app that the client does not have.
@Suite(.ownThreads) struct SampleDefectTests {
    typealias Fixture = CompassFixture

    /// The app requests 999 rows, and reads one page.
    @Test func resultsBeyond999RowsAreRead() async throws {
        try await Fixture.run { fixture in
            try fixture.system.perform(
                (1...1_203).map { CompassChange(user: "ana", fields: ["Headline": "\($0)", "Severity": "3-Average"]) })
            let compass = fixture.compass()
            let query = try await fixture.query(compass, ["id", "Headline"])
            let rows = try await compass.rows(of: query)
            #expect(Set(rows.compactMap { $0["Headline"] }) == Set((1...1_203).map(String.init)))
            #expect(rows.count == 1_203)
            #expect(try await fixture.stats()["pages"] == 3, "500, 500, 203")
        }
    }

    @Test func tooLongResultFails() async throws {
        try await Fixture.run { fixture in
            for _ in 0..<5 { _ = try await fixture.record(fixture.compass()) }
            let exact = fixture.compass { ($0.pageRowsMax, $0.pagesMax) = (2, 3) }
            let query = try await fixture.query(exact, ["id"])
            #expect(try await exact.rows(of: query).count == 5)
            let short = fixture.compass { ($0.pageRowsMax, $0.pagesMax) = (2, 2) }
            await #expect(
                throws: BackendError.notProcessed(reason: "a result set of more than 2 pages", retryAfter: nil)
            ) { try await short.rows(of: query) }
        }
    }

    /// A server with an unknown way to request further pages.
    @Test func repeatedPageFails() async throws {
        try await Fixture.run { fixture in
            for _ in 0..<5 { _ = try await fixture.record(fixture.compass()) }
            try await fixture.switches(#"{"ignoresPageNumber": true}"#)
            let compass = fixture.compass { $0.pageRowsMax = 2 }
            let query = try await fixture.query(compass, ["id"])
            let problem = "page 2 of a result set repeats the previous page"
            await #expect(throws: BackendError.notProcessed(reason: problem, retryAfter: nil)) {
                try await compass.rows(of: query)
            }
        }
    }

    /// A failed delete leaves the app's `Modified Defect` behind, and the next create conflicts.
    @Test func temporaryQueriesAreUniqueAndStrayOnesAreDeleted() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let now = try #require(Timestamp("2026-11-23T13:00:00Z"))
            let names = (0..<3).map { _ in TemporaryQuery.name(at: now) }
            #expect(Set(names).count == 3)
            let hourAgo = Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - 3_600_000)
            let old = Timestamp(millisecondsSinceEpoch: hourAgo.millisecondsSinceEpoch - 1)
            for name in [TemporaryQuery.name(at: old), TemporaryQuery.name(at: hourAgo), "Assigned To Me"] {
                _ = try await fixture.query(compass, ["id"], name: name)
            }
            // A query of another owner is ignored.
            _ = try await fixture.query(
                fixture.compass(as: Fixture.bo), ["id"], name: TemporaryQuery.name(at: old))
            let folder = try #require(try await compass.folder(at: [Folder.personalQueries]))
            #expect(try await compass.removeStrayQueries(in: folder, madeBefore: hourAgo) == 1)
            let left = try #require(try await compass.folder(folder.id)).items.map(\.name)
            #expect(left.count == 2 && left.contains("Assigned To Me") && !left.contains { $0.contains("\(old)") })
        }
    }

    @Test func temporaryNameContainsCreationTime() throws {
        let now = Timestamp.now()
        #expect(TemporaryQuery.madeAt(TemporaryQuery.name(at: now)) == now)
        for name in [
            "", "fieldpost", "fieldpost 2026-11-23T13:00:00.000Z", "fieldpost 2026-11-23T13:00:00.000Z xyz",
            "fieldpost yesterday 9b0f", "Modified Defect", "my fieldpost 2026-11-23T13:00:00.000Z 9b0f",
        ] {
            #expect(TemporaryQuery.madeAt(name) == nil, "\(name)")
        }
    }

    /// The app reads the headline at index 5, the id at 7 and the state at 24.
    @Test func valuesAreFoundByColumnName() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            try await fixture.switches(#"{"shufflesFields": true}"#)
            let record = try #require(try await compass.record(id))
            #expect(record.id == id && record["Headline"]?.value == "Ægir's \"crane\"")
            let query = try await fixture.query(compass, ["id", "Headline", "State"])
            #expect(query.columns.map(\.field) == ["State", "Headline", "id"])
            let row = try #require(try await compass.rows(of: query).first)
            #expect(row["id"] == id && row["Headline"] == "Ægir's \"crane\"" && row["State"] == "Submitted")
            #expect(row["Owner"] == nil)
        }
    }

    @Test func rowWithWrongValueCountIsUnreadable() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            _ = try await fixture.record(compass)
            var query = try await fixture.query(compass, ["id", "Headline"])
            query.columns.append(.init("State"))
            let problem =
                "a row cannot be read: a result set without a readable id: 2 values for 3 columns"
            await #expect(throws: BackendError.notProcessed(reason: problem, retryAfter: nil)) {
                try await compass.rows(of: query)
            }
        }
    }

    /// Two hundred pages, each with an unexpected value: the other rows are read, and each unreadable row is named.
    @Test func unreadableRowDoesNotAffectOthers() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass(as: Fixture.service) { $0.pageRowsMax = 2 }
            try fixture.system.perform(
                (0..<400).map {
                    CompassChange(user: "bo", fields: ["Headline": "\($0)", "Owner": $0 % 2 == 0 ? "ana" : "bo"])
                })
            try await fixture.switches(#"{"unreadableRowsOf": "bo"}"#)
            let set = try await compass.run(try await fixture.query(compass, ["id", "Headline", "Owner", "State"]))
            var (page, number) = (ResultPage?.none, 0)
            var (headlines, unreadableCount): ([String], Int) = ([], 0)
            while page?.isLast != true {
                number += 1
                let next = try await compass.page(number, of: set, after: page)
                headlines += next.rows.filter { $0["Owner"] == "ana" }.compactMap { $0["Headline"] }
                unreadableCount += next.unreadable.count
                page = next
            }
            #expect(headlines == (0..<200).map { "\(2 * $0)" } && number == 201)
            #expect((80...200).contains(unreadableCount))
        }
    }

    /// The app accepts any certificate.
    @Test func untrustedCertificateIsRejected() async throws {
        let server = try await Task.detached { try TLSServer() }.value
        let settings = CompassSettings(
            serverURL: "https://127.0.0.1:\(server.port)", repository: "CCMRepo", database: "SAMPL")
        let compass = CompassClient(settings, as: Fixture.ana, client: Client())
        let error = await #expect(throws: BackendError.self) { try await compass.logIn() }
        guard case .notProcessed = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        // With the authority's certificate the same server responds, with a page that is not from Compass.
        var configuration = Client.Configuration()
        configuration.caFile = server.certificateFile
        let friend = CompassClient(settings, as: Fixture.ana, client: Client(configuration: configuration))
        let answer = await #expect(throws: BackendError.self) { try await friend.repositories() }
        #expect("\(String(describing: answer))".contains("unreadable response"))
    }

    /// The app's watermark is its device's clock; the client compares times of the server with each other.
    @Test func changesAreQueriedByServerClock() async throws {
        try await Fixture.run { fixture in
            try await fixture.switches(
                #"{"zone": {"offsetMinutes": -300, "summer": "us"}, "clockSkewSeconds": -600}"#)
            try await fixture.post("/sandbox/clock", #"{"now": "2026-07-01T12:00:00Z"}"#)
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let query = try await fixture.query(compass, ["id", "history.action_timestamp"])
            let time = try #require(try await compass.rows(of: query).first?["history.action_timestamp"])
            #expect(time == "2026-07-01 07:50:00", "local summer time, ten minutes behind")
            let watermark = try #require(CompassTime(time))
            try await fixture.post("/sandbox/clock", #"{"advanceSeconds": 1}"#)
            _ = try await compass.edit(id, before: .never).commit([FieldValue("Headline", "B")], before: .never)
            let since = try await fixture.query(
                compass, ["history.action_name"],
                [.init("history.action_timestamp", .isAfter, [watermark.description])], name: "since")
            #expect(try await compass.rows(of: since).map { $0["history.action_name"] } == ["Modify"])
        }
    }
}
