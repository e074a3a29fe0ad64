import Foundation
import Model
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct EnvironmentTests {
    private let conninfo: String

    init() throws { conninfo = try makeFoundationDatabase() }

    private func run(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func add(_ people: String, domain: String = "example.com") throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("people.json")
            try people.write(to: file, atomically: true, encoding: .utf8)
            result = try run(
                "add", "acme", "--domain", domain, "--issuer", "http://127.0.0.1:8081", "--audience", "fieldpost",
                "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", "sap", "--backend-url",
                "http://127.0.0.1:8200",
                "--backend-user", "FIELDPOST", "--backend-password-variable", "SAP_PASSWORD", "--people", file.path,
                "--json")
        }
        return try #require(result)
    }

    @Test func repeatedAddUpdatesEnvironment() throws {
        let first = try add(#"[{"email": "Ana@example.com", "reference": {"companyCode": "1010"}}]"#)
        #expect(first.status == 0, "\(first.errors)")
        let second = try add(
            #"[{"email": "ana@example.com", "reference": {"companyCode": "1020"}},"#
                + #"{"email": "bo@example.com", "reference": {}}]"#
        )
        let row = try #require(try second.rows().first)
        #expect(row["name"] as? String == "acme")
        #expect(row["people"] as? Int == 2)
        var connection = try Connection(conninfo)
        let people = try connection.run("SELECT email, reference->>'companyCode' FROM backend.person ORDER BY email")
        #expect(try people.map { try $0.value(0, as: String.self) } == ["ana@example.com", "bo@example.com"])
        #expect(try people[0].value(1) == "1020")
        let list = try run("list")
        #expect(list.output.contains("acme"))
        #expect(list.output.contains("sap http://127.0.0.1:8200"))
    }

    @Test(arguments: [
        ("{}", "is not a JSON array"), (#"[{"email": "ana", "reference": {}}]"#, "not an e-mail address"),
        (#"[{"email": "ana@other.com", "reference": {}}]"#, "not in a domain"),
        (
            #"[{"email": "ana@example.com", "reference": {}}, {"email": "ANA@example.com", "reference": {}}]"#,
            "occurs twice"
        ),
    ]) func invalidPeopleFileIsRejected(people: String, problem: String) throws {
        let result = try add(people)
        #expect(result.status == 1)
        #expect(result.errors.contains(problem))
        #expect(try run("list").output.contains("no environments"))
    }

    @Test func repeatedInvitationCreatesOneRealm() throws {
        let people = (0..<600).map { #"{"email": "p\#($0)@example.com", "reference": {}}"# }
        #expect(try add("[" + people.joined(separator: ",") + "]").status == 0)
        let one = try run("invite", "P7@example.com")
        #expect(one.status == 0, "\(one.errors)")
        #expect(one.output.contains("/users/p7@example.com"))
        let all = try run("invite", "--all")
        #expect(all.output == "599 people invited, 1 invited before\n")
        let unknown = try run("invite", "eve@example.com")
        #expect(unknown.status == 1)
        #expect(unknown.errors.contains("eve@example.com"))

        var connection = try Connection(conninfo)
        let rows = try connection.run(
            """
            SELECT o.fields FROM realm.object o JOIN realm.realm r ON r.id = o.realm_id
            WHERE o.kind = 'Realms' AND r.path = '/users' AND o.fields->>'userId' = 'p7@example.com'
            """)
        try #require(rows.count == 1)
        let fields: JSONBytes = try rows[0].value(0)
        let realms = try JSONDecoder().decode(RealmRegistration.self, from: Data(fields.bytes))
        #expect(realms == RealmRegistration(userId: "p7@example.com", path: try RealmPath.user("p7@example.com")))
        let invited = try run("list", "--json").rows().first?["invited"] as? Int
        #expect(invited == 600)
        let named = try connection.run(
            """
            SELECT o.fields->>'name' FROM access.person p JOIN realm.object o ON o.id = p.object_id
            WHERE o.kind = 'Person' AND p.email = 'p7@example.com'
            """)
        #expect(try named.map { try $0.value(0, as: String.self) } == ["p7"])
        let audit = try fieldpost(
            ["audit", "list", "--action", "people", "--environment", "acme", "--limit", "1000", "--json"],
            environment: ["FIELDPOST_DATABASE_URL": conninfo])
        let subjects = try audit.rows().compactMap { $0["subject"] as? String }
        #expect(subjects.count == 600 && subjects.first == "p7@example.com")
        #expect(Set(subjects).contains("p599@example.com"))
    }

    @Test func omittedOptionsKeepValuesAndSecretsAreSealed() throws {
        #expect(try add("[]").status == 0)
        let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
        let variables = [
            "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": key, "CLIENT_SECRET": "much-secret",
            "SAP_SECRET": "more-secret",
        ]
        let edited = try fieldpost(
            [
                "environment", "edit", "acme", "--address", "Guest@Elsewhere.example", "--client-id", "app",
                "--client-secret-from", "CLIENT_SECRET", "--backend-password-from", "SAP_SECRET", "--hide-unknown",
                "no", "--initialise-on", "login", "--poll-interval", "60",
                "--full-poll-interval", "900", "--calls-per-second", "20", "--deleted-retention", "7", "--json",
            ], environment: variables)
        #expect(edited.status == 0, "\(edited.errors)")
        let shown = try run("show", "acme", "--json")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(shown.output.utf8)) as? [String: Any])
        #expect(json["domains"] as? [String] == ["example.com"])
        #expect(json["addresses"] as? [String] == ["guest@elsewhere.example"])
        #expect(json["hasClientSecret"] as? Bool == true && json["hasBackendPassword"] as? Bool == true)
        #expect(json["backendPasswordVariable"] == nil && json["backendUrl"] as? String == "http://127.0.0.1:8200")
        #expect(json["pollIntervalSeconds"] as? Int == 60 && json["fullPollIntervalSeconds"] as? Int == 900)
        #expect(json["hidesUnknown"] as? Bool == false && json["initialiseOn"] as? String == "login")
        #expect(json["deletedDays"] as? Int == 7)
        #expect(json["callsPerSecond"] as? Int == 20 && json["personCallsPerSecond"] == nil)
        #expect(try run("edit", "acme", "--calls-per-second", "0").status == 0)
        #expect(try run("show", "acme").output.contains("unlimited"))
        #expect(try run("edit", "acme", "--person-calls-per-second", "10001").status != 0)
        #expect(try run("edit", "acme", "--deleted-retention", "0").status != 0)
        #expect(!shown.output.contains("secret\"") && !shown.output.contains("much"))
        var connection = try Connection(conninfo)
        let sealed = try connection.run("SELECT client_secret FROM access.provider")[0].value(0, as: Bytea.self)
        #expect(!String(decoding: sealed.bytes, as: UTF8.self).contains("much-secret"))
        // Without a secret key, or without the variable, nothing is stored.
        let arguments = ["environment", "edit", "acme", "--client-secret-from", "CLIENT_SECRET"]
        #expect(try fieldpost(arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo]).status == 1)
        #expect(
            try fieldpost(
                arguments, environment: variables.filter { $0.key != "CLIENT_SECRET" }
            ).errors.contains("CLIENT_SECRET is not set"))
    }

    @Test func environmentWithoutBackEndIsAccepted() throws {
        #expect(try add("[]").status == 0)
        let edited = try run("edit", "acme", "--backend", "none")
        #expect(edited.status == 0 && !edited.output.contains("8200"), "\(edited.errors)")
        #expect(try run("show", "acme").output.contains("an integration manages it"))
        #expect(try run("check", "acme", "--json").rows().last?["works"] as? Bool == true)
        let described = try run("edit", "acme", "--backend-url", "http://127.0.0.1:8200")
        #expect(
            described.status == 1 && described.errors.contains("exclude --backend none"), "\(described.errors)"
        )
        #expect(try run("edit", "acme", "--backend", "sap").errors.contains("missing: --backend-url, --backend-user"))
        #expect(try add("[]").output.contains("http://127.0.0.1:8200"))
        let audit = try fieldpost(
            ["audit", "list", "--action", "environment", "--environment", "acme", "--json"],
            environment: ["FIELDPOST_DATABASE_URL": conninfo])
        let details = try audit.rows().compactMap { $0["detail"] as? [String: String] }
        try #require(details.count == 3)
        #expect(details[1] == ["changed": "backend backend-url backend-user backend-password"])
        #expect(!audit.output.contains("SAP_PASSWORD"))
    }

    /// The password has two tokens, which are validated before they are sealed.
    @Test func economicNeedsTokensButNoUser() throws {
        let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()
        func addEconomic(_ tokens: String, _ backend: String = "economic") throws -> CommandResult {
            try fieldpost(
                [
                    "environment", "add", "books", "--domain", "books.example", "--issuer", "http://127.0.0.1:8081",
                    "--audience", "fieldpost", "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", backend,
                    "--backend-url", "https://apis.e-conomic.example", "--backend-password-from", "TOKENS",
                ],
                environment: [
                    "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": key, "TOKENS": tokens,
                ])
        }
        #expect(try addEconomic("app").errors.contains("TOKENS is not appSecretToken:agreementGrantToken"))
        let added = try addEconomic("app:grant")
        #expect(added.status == 0, "\(added.errors)")
        #expect(try run("list").output.contains("economic https://apis.e-conomic.example"))
        #expect(try addEconomic("app:grant", "navision").errors.contains("must be one of sap, economic, none"))
        #expect(try addEconomic("app:grant", "sap").errors.contains("missing: --backend-user"))
    }

    /// Verification by the issuer requires the issuer of one organisation, in any order of the changes.
    @Test func issuerVerificationRequiresSingleTenant() throws {
        #expect(try add("[]").status == 0)
        let tenant = "https://login.microsoftonline.com/6d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60/v2.0"
        #expect(try run("show", "acme").output.contains("email_verified"))
        #expect(try run("edit", "acme", "--address-verified-by", "anything").status == 2)
        let shared = ["common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"].map {
            "https://login.microsoftonline.com/\($0)/v2.0"
        }
        for issuer in shared + ["https://login.acme.example"] {
            let result = try run("edit", "acme", "--issuer", issuer, "--address-verified-by", "issuer")
            #expect(result.status == 1 && result.errors.contains("one tenant of Microsoft Entra ID"), "\(issuer)")
        }
        #expect(try run("edit", "acme", "--address-verified-by", "issuer").status == 1)
        let edited = try run(
            "edit", "acme", "--issuer", tenant, "--jwks-url", "http://127.0.0.1:8081/keys", "--address-verified-by",
            "issuer")
        #expect(edited.status == 0, "\(edited.errors)")
        #expect(try run("show", "acme").output.contains(/addresses are verified by +issuer\n/))
        // The issuer cannot be changed to a shared one later.
        #expect(try run("edit", "acme", "--issuer", shared[0]).status == 1)
        #expect(try run("show", "acme").output.contains(tenant))
        #expect(try run("edit", "acme", "--address-verified-by", "xms_edov").status == 0)
        #expect(try run("edit", "acme", "--issuer", shared[0], "--jwks-url", "http://127.0.0.1:8081/keys").status == 0)
    }

    @Test func claimsOfNewestTokenAreShown() throws {
        #expect(try add("[]").status == 0)
        #expect(try run("edit", "acme", "--backend", "none").status == 0)
        func claims() throws -> [String: Any]? {
            try run("check", "acme", "--json").rows().first { $0["check"] as? String == "claims" }
        }
        #expect(try claims()?["detail"] as? String == "no login yet")
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, parked_at, next_at)
            SELECT 'entry-submitter', id, k::text, 'entry.events', 0, '', 0, 'the back end is unavailable: ' || k,
                false, true, 1, ('2026-11-26T18:00:0' || k || 'Z')::timestamptz, now() + k * interval '1 minute'
            FROM realm.environment CROSS JOIN generate_series(1, 3) AS k
            """)
        let circuit = try run("check", "acme", "--json").rows().last?["detail"] as? String ?? ""
        #expect(circuit.hasPrefix("open since 2026-11-26T18:00:01.000Z, 3 keys wait, next attempt at "), "\(circuit)")
        #expect(circuit.hasSuffix(": the back end is unavailable: 3"), "\(circuit)")
        try connection.run(
            "INSERT INTO onboarding.token_claims SELECT id, '{aud,email,preferred_username,tid}' FROM realm.environment"
        )
        let lacking = try #require(try claims())
        #expect(lacking["works"] as? Bool == false)
        let detail = lacking["detail"] as? String ?? ""
        #expect(detail.hasPrefix("no email_verified: the address is not verified; "), "\(detail)")
        #expect(detail.contains("email yes, email_verified no, xms_edov no, tid yes, preferred_username yes"))
        try connection.run("UPDATE access.provider SET address_vouched_by = 'issuer'")
        #expect(try claims()?["works"] as? Bool == true)
    }

    @Test func domainBelongsToOneEnvironment() throws {
        #expect(try add("[]").status == 0)
        let other = try run(
            "add", "other", "--domain", "Example.com", "--issuer", "http://127.0.0.1:9", "--audience", "x",
            "--jwks-url", "http://127.0.0.1:9/jwks", "--backend", "sap", "--backend-url", "http://127.0.0.1:9",
            "--backend-user", "F", "--backend-password-variable", "X")
        #expect(other.status == 1 && other.errors.contains("belongs to the environment acme"), "\(other.errors)")
        #expect(try run("edit", "none", "--domain", "x.example").errors.contains("environment none does not exist"))
        // The database enforces it too.
        var connection = try Connection(conninfo)
        try connection.run("INSERT INTO realm.environment (id, name) VALUES (99, 'third')")
        let error = #expect(throws: PostgresError.self) {
            try connection.run("INSERT INTO access.domain VALUES ('example.com', 99)")
        }
        #expect(error?.sqlState == "23505")
        // Duplicates are ignored, and a domain can be given to another environment.
        #expect(try run("edit", "acme", "--domain", "a.example", "--domain", "A.example").status == 0)
        #expect(try run("show", "acme", "--json").output.contains(#""a.example""#))
        try connection.run("INSERT INTO access.domain VALUES ('example.com', 99)")
        #expect(
            try run("edit", "acme", "--domain", "example.com").errors.contains(
                "the domain example.com belongs to the environment third"))
    }

    @Test(arguments: [
        (["--issuer", "http://login.example"], "--issuer http://login.example is not an https URL"),
        (["--jwks-url", "http://login.example/jwks"], "--jwks-url"),
        (["--discovery-url", "http://login.example/x"], "--discovery-url"),
        (["--discovery-url", "https://login.example/x", "--no-discovery-url"], "not both"),
        (["--backend-url", "ftp://sap.example"], "--backend-url"),
        (["--domain", "@acme.example"], "--domain @acme.example is not a domain"),
        (["--domain", "bücher.de"], "xn--"), (["--domain", "example"], "--domain"),
        (["--address", "ana"], "--address"),
    ]) func invalidURLsAndDomainsAreRejected(options: [String], problem: String) throws {
        let result = try fieldpost(
            ["environment", "edit", "acme"] + options, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(result.status == 2 && result.errors.contains(problem), "\(result.errors)")
    }

    @Test func discoveryURLCanBeRemoved() throws {
        #expect(try add("[]").status == 0)
        #expect(try run("edit", "acme", "--discovery-url", "http://127.0.0.1:9/x").status == 0)
        #expect(try run("show", "acme").output.contains("http://127.0.0.1:9/x"))
        #expect(try run("edit", "acme", "--no-discovery-url").status == 0)
        #expect(try run("show", "acme").output.contains("below the issuer"))
    }

    /// An edit that waits for the provider does not overwrite a concurrent edit.
    @Test func concurrentEditsAreBothApplied() async throws {
        #expect(try add("[]").status == 0)
        try await withProvider { provider in
            provider.gate.hold("/acme/.well-known")
            let variables = ["FIELDPOST_DATABASE_URL": conninfo]
            let slow = BackgroundThread {
                let edit = ["environment", "edit", "acme", "--issuer", provider.issuer("acme")]
                let result = try fieldpost(edit, environment: variables)
                #expect(result.status == 0, "\(result.errors)")
            }
            let quick = BackgroundThread {
                try waitUntil("the other edit calls the provider") { provider.gate.isReached }
                let result = try fieldpost(
                    ["environment", "edit", "acme", "--audience", "phones"], environment: variables)
                #expect(result.status == 0, "\(result.errors)")
            }
            try await withOwnThread {
                var connection = try Connection(conninfo)
                try waitUntil("the second edit waits, or is done") {
                    try quick.isDone
                        || connection.run(
                            """
                            SELECT FROM pg_stat_activity
                            WHERE wait_event = 'advisory' AND datname = current_database()
                            """
                        ).count > 0
                }
                provider.gate.open()
                try slow.wait()
                try quick.wait()
            }
            let shown = try run("show", "acme")
            #expect(shown.output.contains(provider.issuer("acme")) && shown.output.contains("phones"))
        }
    }

    @Test func checkReportsFailures() throws {
        #expect(try add(#"[{"email": "ana@example.com", "reference": {}}]"#).status == 0)
        let checked = try run("check", "acme", "--json")
        #expect(checked.status == 1)
        let works = try checked.rows().map { "\($0["check"] ?? "") \($0["works"] as? Bool ?? true)" }
        #expect(works == ["discovery false", "keys false", "claims true", "back end false"])
    }
}
