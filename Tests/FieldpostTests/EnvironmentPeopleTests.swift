import Foundation
import Postgres
import TestSupport
import Testing

@testable import Sandbox

/// `fieldpost environment people` with the emulator of e-conomic.
@Suite(.ownThreads) struct EnvironmentPeopleTests {
    private let conninfo: String

    init() throws { conninfo = try makeFoundationDatabase() }

    private static let employees = """
        {"employees": [
          {"number": 7, "name": "Ana", "email": "Ana@acme.example"},
          {"number": 8, "name": "Bo", "email": "bo@acme.example"},
          {"number": 9, "name": "Gone", "email": "gone@acme.example", "isBarred": true},
          {"number": 10, "name": "Unnamed"},
          {"number": 11, "name": "Guest", "email": "guest@other.example"},
          {"number": 12, "name": "Cy", "email": "cy@elsewhere.example"},
          {"number": 13, "name": "Twin", "email": "twin@acme.example"},
          {"number": 14, "name": "Twin", "email": "TWIN@acme.example"}, {"number": 15, "name": "Bad", "email": "x@y"}],
         "projects": [], "activities": []}
        """

    private func run(_ arguments: [String], password: String = "sandbox-app:sandbox-grant") throws -> CommandResult {
        try fieldpost(
            ["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo, "PASSWORD": password])
    }

    private func add(_ name: String, _ kind: String, port: Int, people: String? = nil) throws {
        var arguments = [
            "add", name, "--domain", name + ".example", "--address", "cy@elsewhere.example",
            "--issuer", "http://127.0.0.1:8081/" + name, "--audience", "fieldpost",
            "--jwks-url", "http://127.0.0.1:8081/jwks", "--backend", kind,
            "--backend-url", "http://127.0.0.1:\(port)", "--backend-user", "FIELDPOST",
            "--backend-password-variable", "PASSWORD",
        ]
        try withFolder { folder in
            if let people {
                let file = folder.appendingPathComponent("people.json")
                try people.write(to: file, atomically: true, encoding: .utf8)
                arguments += ["--people", file.path]
            }
            let result = try run(arguments)
            try #require(result.status == 0, "\(result.errors)")
        }
    }

    private func stored() throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(
            "SELECT email || ' ' || (reference->>'employeeNumber') FROM backend.person ORDER BY email"
        ).map { try $0.value(0, as: String.self) }
    }

    private func audited() throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(
            "SELECT subject FROM access.audit WHERE action = 'person.accepted' ORDER BY id"
        ).map { try $0.value(0, as: String.self) }
    }

    /// Runs `body` with the emulator and an environment that has Bo with another number than the back end.
    private func withEconomic(_ body: @Sendable (EconomicEmulator) throws -> Void) async throws {
        let emulator = try EconomicEmulator()
        emulator.system.load(try JSONDecoder().decode(EconomicOrganisation.self, from: Data(Self.employees.utf8)))
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            try await withOwnThread {
                try add(
                    "acme", "economic", port: port,
                    people: #"[{"email": "bo@acme.example", "reference": {"employeeNumber": "80"}}]"#)
                try body(emulator)
            }
        }
    }

    @Test func proposalsAreListedWithoutChanges() async throws {
        try await withEconomic { _ in
            let result = try run(["people", "acme", "--from-backend", "--json"])
            #expect(result.status == 0, "\(result.errors)")
            let states = try result.rows().map { row in
                "\(row["email"] as? String ?? "-") \(row["state"] as? String ?? "") \(row["detail"] as? String ?? "")"
            }
            #expect(
                states == [
                    "ana@acme.example new ", "bo@acme.example differs stored reference: employeeNumber=80",
                    "gone@acme.example unusable barred in the back end", "- unusable no e-mail address",
                    "guest@other.example unusable not in the environment's domains and addresses",
                    "cy@elsewhere.example new ", "twin@acme.example unusable the address occurs twice",
                    "twin@acme.example unusable the address occurs twice",
                    "x@y unusable 'x@y' is not a usable e-mail address",
                ])
            #expect(try stored() == ["bo@acme.example 80"])
            #expect(try audited().isEmpty)
            let table = try run(["people", "acme", "--from-backend"])
            #expect(table.output.contains("employeeNumber=7") && table.output.contains("STATE"))
        }
    }

    @Test func acceptAllAddsNewPeopleOnly() async throws {
        try await withEconomic { _ in
            let result = try run(["people", "acme", "--from-backend", "--accept-all", "--json"])
            #expect(result.status == 0, "\(result.errors)")
            #expect(
                try result.rows().filter { $0["state"] as? String == "accepted" }.map { $0["email"] as? String }
                    == ["ana@acme.example", "cy@elsewhere.example"])
            #expect(try stored() == ["ana@acme.example 7", "bo@acme.example 80", "cy@elsewhere.example 12"])
            #expect(try audited() == ["ana@acme.example", "cy@elsewhere.example"])
            // Repeated, there are no new people, and no audit records.
            let again = try run(["people", "acme", "--from-backend", "--accept-all", "--json"])
            #expect(try again.rows().filter { $0["state"] as? String == "unchanged" }.count == 2)
            #expect(try audited().count == 2)
        }
    }

    @Test func changedReferenceIsAcceptedByNameOnly() async throws {
        try await withEconomic { _ in
            let result = try run(["people", "acme", "--from-backend", "--accept", "BO@acme.example"])
            #expect(result.status == 0 && result.output.contains("accepted"), "\(result.errors)")
            #expect(try stored() == ["bo@acme.example 8"])
            #expect(try audited() == ["bo@acme.example"])
            for (email, problem) in [
                ("gone@acme.example", "cannot be accepted: barred"), ("twin@acme.example", "the address occurs twice"),
                ("me@acme.example", "has no person with the address me@acme.example"),
            ] {
                let result = try run(["people", "acme", "--from-backend", "--accept", "ana@acme.example", email])
                #expect(result.status == 1 && result.errors.contains(problem), "\(result.errors)")
            }
            #expect(try stored() == ["bo@acme.example 8"], "an unusable proposal prevents all changes")
        }
    }

    @Test func peopleAreListed() async throws {
        try await withEconomic { _ in
            let before = try run(["people", "acme"]).output
            #expect(before.contains("bo@acme.example") && before.contains("employeeNumber=80"))
            #expect(before.contains(" no\n"))
            #expect(try run(["invite", "bo@acme.example"]).status == 0)
            #expect(try run(["people", "acme", "--json"]).rows().map { $0["hasRealm"] as? Bool } == [true])
        }
    }

    @Test func backEndFailureIsReportedInOneLine() async throws {
        try await withEconomic { _ in
            let result = try run(["people", "acme", "--from-backend"], password: "sandbox-app:wrong")
            #expect(result.status == 1 && result.errors.contains("credentials"), "\(result.errors)")
            #expect(!result.errors.contains("wrong") && result.errors.split(separator: "\n").count == 1)
        }
    }

    @Test func backEndWithoutPeopleListIsReported() throws {
        try add("acme", "sap", port: 1)
        let result = try run(["people", "acme", "--from-backend"])
        #expect(result.status == 1 && result.errors.contains("sap cannot list people"), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(try run(["people", "acme"]).output.contains("no people"))
        #expect(try run(["people", "unknown"]).status == 1)
        for arguments in [
            ["--accept-all"], ["--accept", "a@acme.example"],
            ["--from-backend", "--accept-all", "--accept", "a@b.example"],
        ] {
            #expect(try run(["people", "acme"] + arguments).status == 2)
        }
    }
}
