import Foundation
import Identity
import Model
import Postgres
import Secrets
import Tenants
import TestSupport
import Testing

@testable import Onboarding

/// Lookups of an address's organisation.
@Suite(.ownThreads) struct OrganisationTests {
    private let secrets: SecretBox
    private let conninfo: String

    /// Two environments: the first one has 20,000 domains, the second one an address in one of them.
    init() throws {
        secrets = try SecretBox([Data(repeating: 7, count: 32).base64EncodedString()])
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        for id in [Int32(1), 2] {
            let context = SecretContext.clientSecret(EnvironmentID(rawValue: id))
            let secret = Bytea(try secrets.seal("hush", at: context))
            try EnvironmentRows(
                id: id, name: "e\(id)",
                provider: .init(issuer: "https://login.example/\(id)", clientID: "c", clientSecret: secret),
                backend: .init()
            ).insert(on: &connection)
        }
        try connection.run([
            "INSERT INTO access.domain SELECT 'd' || i || '.example', 1 FROM generate_series(1, 20000) AS i",
            "INSERT INTO access.address VALUES ('ana@d7.example', 2)",
            "INSERT INTO backend.person (environment_id, email, reference) VALUES (1, 'bo@d7.example', '{}')",
        ])
    }

    @Test(arguments: [
        ("bo@d7.example", Int32?.some(1), true), ("eve@d19999.example", 1, false), ("Ana@D7.example", 2, false),
        ("ana@d20001.example", nil, false),
    ]) func addressTakesPrecedenceOverDomain(text: String, owner: Int32?, isKnown: Bool) throws {
        var connection = try Connection(conninfo)
        let email = try #require(EmailAddress(text))
        switch try Organisation.find(email, secrets, on: &connection) {
        case .organisation(let organisation, let isKnownHere):
            #expect(organisation.environment.rawValue == owner && isKnownHere == isKnown)
        case .none, .notConfigured: #expect(owner == nil)
        }
    }

    /// The cost does not depend on the number of domains: unauthenticated clients cause lookups.
    @Test func domainLookupUsesIndex() throws {
        var connection = try Connection(conninfo)
        _ = try connection.run("SELECT pg_stat_force_next_flush()")
        let before = try reads(on: &connection)
        let email = try #require(EmailAddress("eve@d19999.example"))
        _ = try Organisation.find(email, secrets, on: &connection)
        _ = try connection.run("SELECT pg_stat_force_next_flush()")
        let after = try reads(on: &connection)
        #expect(after > before && after - before <= 2)
    }

    /// Returns the number of domain rows and index entries that PostgreSQL has read.
    private func reads(on connection: inout Connection) throws -> Int64 {
        let rows = try connection.run(
            """
            SELECT t.seq_tup_read
                + (SELECT sum(i.idx_tup_read)::bigint FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
            FROM pg_stat_user_tables t WHERE t.schemaname = 'access' AND t.relname = 'domain'
            """)
        return try rows[0].value(0)
    }
}
