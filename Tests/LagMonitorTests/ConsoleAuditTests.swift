import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

/// Audit records of views, conflicts of actions, and rejected requests.
@Suite(.ownThreads) struct ConsoleAuditTests {
    private static let ids = (1...60).map { UUID(uuid: (0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, $0)) }

    private func details(_ action: String, _ fixture: ConsoleFixture) throws -> [String] {
        try fixture.withDatabase {
            try $0.run("SELECT subject || ' ' || detail FROM access.audit WHERE action = \(action) ORDER BY id")
                .decode(String.self)
        }
    }

    /// Each page with personal data writes a record, including later pages.
    @Test func viewsAreAudited() async throws {
        try await withConsole { fixture in
            try fixture.addEntries(Self.ids, of: "x@example.com", fields: "{}")
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let realm = "environment=acme&path=/users/x@example.com"
            for path in [
                "/api/realms?environment=acme&prefix=/users/", "/api/realms?environment=acme&after=/common",
                "/api/realm?\(realm)", "/api/realm/people?\(realm)", "/api/realm/people?\(realm)&after=m",
                "/api/realm/objects?\(realm)&kind=TimeEntry",
                "/api/realm/objects?\(realm)&kind=TimeEntry&after=\(Self.ids[49].text)",
            ] { #expect(try await visitor.send("GET", path).status == 200, "\(path)") }
            #expect(try details("realms.listed", fixture) == ["/users/ {}", #"/ {"after": "/common"}"#])
            #expect(try details("realm.viewed", fixture).count == 1)
            #expect(
                try details("people.listed", fixture)
                    == ["/users/x@example.com {}", #"/users/x@example.com {"after": "m"}"#])
            #expect(
                try details("payload.viewed", fixture) == [
                    #"/users/x@example.com {"kind": "TimeEntry"}"#,
                    #"/users/x@example.com {"kind": "TimeEntry", "after": "\#(Self.ids[49].text)"}"#,
                ])
        }
    }

    @Test func changedKeyIsNotModified() async throws {
        try await withConsole { fixture in
            try fixture.park("k", reason: "closed")
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let displayed = fixture.body("k", version: try fixture.version(of: "k"))
            try fixture.withDatabase {
                _ = try $0.run("UPDATE pipeline.parked SET reason = 'another', parked_at = now()")
            }
            for path in ["/api/deferred/discard", "/api/deferred/retry"] {
                #expect(try await visitor.act(path, displayed) == 409, "\(path)")
                #expect(try await visitor.act(path, #"{"group":"g","environment":1,"key":"k"}"#) == 400, "\(path)")
            }
            let states = try fixture.withDatabase {
                try $0.run("SELECT is_dead FROM pipeline.parked").decode(Bool.self)
            }
            #expect(states == [true])
            #expect(try fixture.acts("parked.discarded").isEmpty)
            #expect(try fixture.acts("parked.retried").isEmpty)
        }
    }

    /// Keys that changed since they were displayed stay as they are, and have no record.
    @Test func displayedKeysAreRetriedTogether() async throws {
        try await withConsole { fixture in
            for key in ["a", "b", "c"] { try fixture.park(key, reason: "closed") }
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let keys = try ["a", "b", "c"].map { fixture.body($0, version: try fixture.version(of: $0)) }
            try fixture.withDatabase {
                _ = try $0.run("UPDATE pipeline.parked SET reason = 'another', parked_at = now() WHERE key = 'b'")
            }
            let path = "/api/deferred/retry-keys"
            func body(_ keys: [String]) -> String { #"{"keys":[\#(keys.joined(separator: ","))]}"# }
            let excess = Array(repeating: keys[0], count: ConsoleAPI.retryCountMax + 1)
            for rejected in [excess, ["{}"]] { #expect(try await visitor.act(path, body(rejected)) == 400) }
            #expect(try fixture.acts("parked.retried").isEmpty)
            #expect(try await visitor.act(path, body(keys)) == 200)
            let states = try fixture.withDatabase {
                try $0.run("SELECT is_dead FROM pipeline.parked ORDER BY key").decode(Bool.self)
            }
            #expect(states == [false, true, false])
            let records = Set(try fixture.acts("parked.retried"))
            #expect(records == ["console:ana@example.com a", "console:ana@example.com c"])
        }
    }

    @Test func unreadableMessageCannotBeRetried() async throws {
        try await withConsole { fixture in
            try fixture.park("entry.events/0/1", reason: "no usable header")
            try fixture.withDatabase { _ = try $0.run("UPDATE pipeline.parked SET environment_id = 0") }
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let version = try fixture.version(of: "entry.events/0/1")
            let key = fixture.body("entry.events/0/1", environment: 0, version: version)
            #expect(try await visitor.act("/api/deferred/retry", key) == 409)
            let states = try fixture.withDatabase {
                try $0.run("SELECT is_dead FROM pipeline.parked").decode(Bool.self)
            }
            #expect(states == [true])
            #expect(try await visitor.act("/api/deferred/discard", key) == 204)
        }
    }

    /// A view would write an audit record, which a transfer blocks.
    @Test(arguments: [("held", 503), ("left", 409)])
    func viewsOfMovingEnvironmentAreRejected(state: String, status: Int) async throws {
        try await withConsole { fixture in
            try fixture.park("k", reason: "closed")
            let displayed = fixture.body("k", version: try fixture.version(of: "k"))
            try fixture.withDatabase { connection in
                try connection.run(
                    """
                    INSERT INTO realm.move (environment_id, move_id, state)
                    SELECT id, gen_random_uuid(), \(state) FROM realm.environment
                    """)
                for table in ["access.audit", "pipeline.parked"] {
                    try connection.run("SELECT realm.hold(id, \(table)::regclass) FROM realm.environment")
                }
            }
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let view = try await visitor.send("GET", "/api/realms?environment=acme&prefix=/")
            #expect(view.status == status)
            #expect(String(decoding: view.body, as: UTF8.self).contains("another installation"))
            #expect(try await visitor.act("/api/deferred/discard", displayed) == 409)
            #expect(try await visitor.act("/api/deferred/retry", displayed) == 409)
        }
    }

    @Test func nullCharactersAreRejected() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let cursor = #"{"group":"g\u0000","environment":1,"key":"k"}"#
            let encoded = try #require(cursor.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
            for path in [
                "/api/deferred?after=\(encoded)", "/api/deferred?reason=%00", "/api/deferred?after=%00",
                "/api/realms?environment=acme&after=%00", "/api/environments?after=%00", "/api/audit?action=%00",
                "/api/audit?before=x",
            ] { #expect(try await visitor.send("GET", path).status == 400, "\(path)") }
            for key in [fixture.body(#"k\u0000"#, version: "v"), fixture.body("k", version: #"\u0000"#)] {
                #expect(try await visitor.act("/api/deferred/discard", key) == 400)
            }
        }
    }

    @Test func auditPagesHaveCursorAndSearchLimit() async throws {
        struct AuditPage: Decodable {
            struct Act: Decodable { let time, actor, action, subject, detail, address: String }
            let acts: [Act]
            let next: String?
            let since: String?
        }
        try await withConsole { fixture in
            try fixture.withDatabase {
                _ = try $0.run(
                    """
                    INSERT INTO access.audit (actor, action, subject, address)
                    SELECT 'a', CASE WHEN i = 1 THEN 'rare' ELSE 'login.succeeded' END, i::text, 'here'
                    FROM generate_series(1, 100100) AS i
                    """)
            }
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            func acts(_ query: String) async throws -> AuditPage {
                let response = try await visitor.send("GET", "/api/audit?" + query)
                return try JSONDecoder().decode(AuditPage.self, from: Data(response.body))
            }
            let first = try await acts("action=login")
            #expect(first.acts.map(\.subject) == (0..<50).map { "\(100_100 - $0)" } && first.since == nil)
            let second = try await acts("action=login&before=\(try #require(first.next))")
            #expect(second.acts.first?.subject == "100050")
            // The limit of the search is reported.
            let rare = try await acts("action=rare")
            #expect(rare.acts.isEmpty && rare.since != nil)
            let rest = try await acts("action=rare&before=\(try #require(rare.next))")
            #expect(rest.acts.map(\.subject) == ["1"] && rest.next == nil && rest.since == nil)
        }
    }
}
