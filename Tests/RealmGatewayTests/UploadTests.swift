import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// `POST /v1/uploads`: the queue of a client of the PowerSync protocol.
@Suite(.ownThreads) struct UploadTests {
    private static let own = "/users/ana@example.com"

    /// A client's database, which sends entries as its SDK returns them.
    private struct Database {
        let fixture: GatewayFixture
        let token: String
        let clientID = UUID().uuidString.lowercased()

        init(_ fixture: GatewayFixture, _ email: String = "ana@example.com") async throws {
            self.fixture = fixture
            token = try await fixture.keys.token(email)
        }

        func send(_ entries: [[String: Any]]) async throws -> (status: Int, json: [String: Any]) {
            let body = try JSONSerialization.data(withJSONObject: ["clientId": clientID, "entries": entries])
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/v1/uploads"),
                    headers: [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")],
                    body: Array(body), totalMax: patienceMax))
            let json = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            return (response.status, json ?? [:])
        }

        /// Sends entries and returns, for each, `accepted` or the name of its problem.
        func results(_ entries: [[String: Any]]) async throws -> [String] {
            let (status, json) = try await send(entries)
            #expect(status == 200, "\(json)")
            return (json["results"] as? [[String: Any]] ?? []).map { result in
                guard let problem = result["rejected"] as? [String: Any] else {
                    return result["accepted"] == nil ? "\(result)" : "accepted"
                }
                return (problem["type"] as? String)?.split(separator: ":").last.map(String.init) ?? "\(problem)"
            }
        }
    }

    private func entry(
        _ number: Int, _ op: String, _ kind: String, _ id: UUID, _ data: [String: Any]? = nil, realm: String = own
    ) -> [String: Any] {
        [
            "op_id": number, "tx_id": number / 2, "op": op, "type": kind, "id": id.uuidString.lowercased() + realm,
            "data": data.map { $0 as Any } ?? NSNull(), "metadata": "by a test",
        ]
    }

    /// SQLite's 0 and 1, and JSON in texts, become values of the declared types.
    @Test func columnsOfDeclaredKindsBecomeFields() async throws {
        try await withGateway { fixture in
            let database = try await Database(fixture)
            try fixture.apply(
                #"{"kinds":{"Site":{"realms":["user"],"properties":{"isOpen":{"type":["boolean","null"]},"#
                    + #""floors":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"#
                    + #""permissions":[{"who":["owner"],"may":["create","change"]}]}}}"#)
            let id = UUID()
            let results = try await database.results([
                entry(1, "PUT", "Site", id, ["isOpen": 1, "floors": 3, "tags": #"["new"]"#]),
                entry(2, "PATCH", "Site", id, ["isOpen": 0]), entry(3, "PATCH", "Site", id, ["floors": "three"]),
                entry(4, "DELETE", "Site", id),
            ])
            #expect(results == ["accepted", "accepted", "invalid-field", "operation-not-allowed"])
            #expect(
                try fixture.stored(Self.own)["Site/\(id.text)"] == #"{"floors":3,"isOpen":false,"tags":["new"]}"#)
            let device = try await BucketDevice(fixture, "ana@example.com")
            try await device.sync()
            #expect(try await device.shown(Self.own) == fixture.stored(Self.own))
            #expect(await device.broken == [])
        }
    }

    @Test func columnsBecomeFields() async throws {
        try await withGateway { fixture in
            let database = try await Database(fixture)
            let (note, entry, context, node) = (UUID(), UUID(), UUID(), UUID())
            let selection = #"[{"context":"\#(context.uuidString)","node":"\#(node.uuidString)"}]"#
            let results = try await database.results([
                self.entry(1, "PUT", "Note", note, ["title": "say \"hi\" \\", "isTask": 1, "isDone": 0]),
                self.entry(
                    2, "PUT", "TimeEntry", entry,
                    [
                        "entryDate": "2026-03-30", "timeType": "duration", "durationSeconds": 3600, "status": "draft",
                        "reporting": selection, "submitRequested": 0,
                    ]),
                self.entry(3, "PATCH", "Note", note, ["isDone": 1, "title": "done"]),
                self.entry(4, "PATCH", "Note", note, [:]),
            ])
            #expect(results == ["accepted", "accepted", "accepted", "accepted"])
            let stored = try fixture.stored(Self.own)
            let (storedNote, storedEntry) = (
                try #require(stored["Note/\(note.text)"]), try #require(stored["TimeEntry/\(entry.text)"])
            )
            #expect(storedNote.contains(#""isDone":true"#) && storedNote.contains(#""isTask":true"#))
            #expect(storedEntry.contains(#""submitRequested":false"#))
            #expect(storedEntry.contains(#""context":"\#(context.text)""#))
        }
    }

    @Test func numbersMayBeMissingAndRepeatsGetTheirResult() async throws {
        try await withGateway { fixture in
            let database = try await Database(fixture)
            let empty = try await database.send([])
            #expect(empty.status == 200 && empty.json["expectedSequence"] as? Int == 1)
            let ids = (0..<4).map { _ in UUID() }
            let first = [
                entry(3, "PUT", "Note", ids[0], ["title": "one"]), entry(7, "PUT", "Note", ids[1], ["title": "two"]),
                entry(8, "PUT", "Note", ids[2], ["colour": "blue"]),
            ]
            #expect(try await database.results(first) == ["accepted", "accepted", "unknown-field"])
            // A repeat, with another entry behind it.
            let (status, json) = try await database.send(
                first + [entry(20, "PUT", "Note", ids[3], ["title": "three"])])
            #expect(status == 200 && json["expectedSequence"] as? Int == 21)
            #expect(try await database.results(first) == ["accepted", "accepted", "unknown-field"])
            // A number that was skipped has no result.
            #expect(try await database.results([entry(5, "DELETE", "Note", ids[0])]) == ["result-expired"])
            #expect(try fixture.stored(Self.own).keys.filter { $0.hasPrefix("Note/") }.count == 3)
            #expect(
                try await database.send([])
                    .json["expectedSequence"] as? Int == 21)
        }
    }

    @Test func onlyTheInvalidEntryIsRejected() async throws {
        try await withGateway { fixture in
            let database = try await Database(fixture)
            let id = UUID()
            var rows = [
                entry(1, "UPSERT", "Note", id), entry(2, "PUT", "Nothing", id, [:]),
                entry(3, "PUT", "Note", id, ["title": "not mine"], realm: "/users/bo@example.com"),
                entry(4, "PUT", "TimeEntry", id, ["reporting": "no list", "status": "draft"]),
                entry(5, "PUT", "Note", id, ["title": "kept"]), entry(6, "DELETE", "Note", id),
            ]
            rows[0]["id"] = "no id"
            rows.append(entry(7, "PUT", "Note", UUID(), ["title": "no realm"], realm: ""))
            #expect(
                try await database.results(rows) == [
                    "malformed-mutation", "unknown-kind", "realm-not-permitted", "invalid-field", "accepted",
                    "accepted", "malformed-mutation",
                ])
        }
    }

    @Test func requestWithoutReadableNumbersIsRefused() async throws {
        try await withGateway { fixture in
            let database = try await Database(fixture)
            let id = UUID()
            var unnumbered = entry(1, "PUT", "Note", id, ["title": "x"])
            unnumbered["op_id"] = "one"
            for entries in [
                [unnumbered], [entry(Int.max - 1, "DELETE", "Note", id)],
                [entry(2, "DELETE", "Note", id), entry(2, "DELETE", "Note", id)],
            ] {
                let (status, json) = try await database.send(entries)
                #expect(status == 400 && (json["detail"] as? String)?.contains("op_id") == true, "\(json)")
            }
            #expect(try await database.send([]).json["expectedSequence"] as? Int == 1)
        }
    }
}
