import Foundation
import Model
import Postgres
import TestSupport
import Testing

@Suite struct EnvironmentTests {
    private let conninfo: String

    init() throws { conninfo = try makeFoundationDatabase() }

    private func run(_ arguments: String...) throws -> Answer {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func add(_ people: String, domain: String = "example.com") throws -> Answer {
        var answer: Answer?
        try withFolder { folder in
            let file = folder.appendingPathComponent("people.json")
            try people.write(to: file, atomically: true, encoding: .utf8)
            answer = try run(
                "add", "acme", "--domain", domain, "--issuer", "http://127.0.0.1:8081", "--audience", "fieldpost",
                "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", "sap", "--backend-url",
                "http://127.0.0.1:8200",
                "--backend-user", "FIELDPOST", "--backend-password-variable", "SAP_PASSWORD", "--people", file.path,
                "--json")
        }
        return try #require(answer)
    }

    @Test func addedTwiceItIsBroughtUpToDate() throws {
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
        (#"[{"email": "ana@other.com", "reference": {}}]"#, "none of the domains"),
        (
            #"[{"email": "ana@example.com", "reference": {}}, {"email": "ANA@example.com", "reference": {}}]"#,
            "there twice"
        ),
    ]) func aPeopleFileThatCannotBeRightIsRefused(people: String, problem: String) throws {
        let answer = try add(people)
        #expect(answer.status == 1)
        #expect(answer.errors.contains(problem))
        #expect(try run("list").output.contains("there is no environment"))
    }

    @Test func anInvitedPersonHasARealmOnce() throws {
        let people = (0..<600).map { #"{"email": "p\#($0)@example.com", "reference": {}}"# }
        #expect(try add("[" + people.joined(separator: ",") + "]").status == 0)
        let one = try run("invite", "P7@example.com")
        #expect(one.status == 0, "\(one.errors)")
        #expect(one.output.contains("/users/p7@example.com"))
        let all = try run("invite", "--all")
        #expect(all.output == "599 people invited, 1 were invited before\n")
        let stranger = try run("invite", "eve@example.com")
        #expect(stranger.status == 1)
        #expect(stranger.errors.contains("eve@example.com"))

        var connection = try Connection(conninfo)
        let rows = try connection.run(
            """
            SELECT o.fields FROM realm.object o JOIN realm.realm r ON r.id = o.realm_id
            WHERE o.kind = 'Realms' AND r.path = '/users' AND o.fields->>'userId' = 'p7@example.com'
            """)
        try #require(rows.count == 1)
        let fields: JSONBytes = try rows[0].value(0)
        let realms = try JSONDecoder().decode(Realms.self, from: Data(fields.bytes))
        #expect(realms == Realms(userId: "p7@example.com", path: try RealmPath.user("p7@example.com")))
        let invited = try run("list", "--json").rows().first?["invited"] as? Int
        #expect(invited == 600)
    }
}
