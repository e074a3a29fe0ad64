import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import BackendPoller
@testable import Sandbox

/// A company in SAP that is polled.
extension PollerWorld {
    /// The people of the second company code have the numbers of the first people of the first one.
    static func assignment(_ person: Int, of count: Int) -> (agreement: String, company: String) {
        person < count - 2 ? ("\(person)", "1010") : ("\(person - count + 2)", "2020")
    }

    static func email(_ person: Int) -> String { "p\(person)@example.com" }

    static func partner(_ person: Int) -> String {
        "00000000-0000-4000-8000-" + String(String(1_000_000_000_000 + person).suffix(12))
    }

    /// Runs `body` with an SAP emulator of its own, in which a process without row counts needs three parts to list all
    /// days: up to the 72nd before today, up to the 176th, and the others.
    static func runSAP(
        people count: Int = 24, _ body: @Sendable (inout PollerWorld) async throws -> Void
    ) async throws {
        let emulator = try SAPEmulator()
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            var world = try PollerWorld(port: port, kind: "sap", password: "sandbox", entryDays: 200)
            let client = world.client
            defer { client.shutDown() }
            var people: [String] = []
            for person in 0..<count {
                let (agreement, company) = assignment(person, of: count)
                try world.addPerson(
                    email(person),
                    reference: [
                        "personWorkAgreementExternalId": agreement, "companyCode": company,
                        "businessPartnerUuid": partner(person),
                    ])
                people.append(
                    """
                    {"personWorkAgreementExternalId": "\(agreement)", "companyCode": "\(company)",
                     "businessPartnerUuid": "\(partner(person))", "name": "p\(person)"}
                    """)
            }
            let team = (0..<count).map { "\"\(partner($0))\"" }.joined(separator: ", ")
            try await world.post(
                "/sandbox/organisation",
                """
                {"people": [\(people.joined(separator: ", "))], "customers": [],
                 "projects": [{"projectUuid": "\(partner(9_001))", "project": "P1", "description": "Harbour",
                   "elements": [{"projectElementUuid": "\(partner(9_002))", "projectElement": "P1.1",
                     "description": "Piers"}], "teamMembers": [\(team)]}]}
                """)
            try await body(&world)
        }
    }

    /// Adds a record in SAP.
    ///
    /// - Parameter marker: The marker of its entry.
    func add(
        _ person: Int, on offset: Int, hundredths: Int = 100, of count: Int = 24, marker: String = ""
    ) async throws -> String {
        let (agreement, company) = Self.assignment(person, of: count)
        return try await addRecord(agreement, company, on: offset, hundredths, marker)
    }

    func addRecord(
        _ agreement: String, _ company: String, on offset: Int, _ hundredths: Int = 100, _ marker: String = ""
    ) async throws -> String {
        let numbers = try await change(
            """
            "person": "\(agreement)", "companyCode": "\(company)", "date": "\(Self.today.adding(days: offset))",
            "hundredths": \(hundredths), "wbsElement": "P1.1", "note": "\(marker)"
            """)
        return try #require(numbers.first)
    }

    /// Changes a record in SAP.
    func change(_ record: String, _ fields: String) async throws {
        _ = try await change("\"record\": \"\(record)\", " + fields)
    }

    private func change(_ fields: String) async throws -> [String] {
        let response = try await post("/sandbox/records", #"{"records": [{\#(fields)}]}"#)
        return try JSONDecoder().decode([String: [String]].self, from: Data(response.body))["records"] ?? []
    }

    /// Returns the live records of a person, as SAP lists them for that person.
    func live(_ person: Int, of count: Int = 24) async throws -> Set<BackendEntry> {
        let (agreement, company) = Self.assignment(person, of: count)
        let entries = try await backend.entries(
            of: BackendPerson(
                email: Self.email(person),
                reference: ["personWorkAgreementExternalId": agreement, "companyCode": company]),
            from: Self.today.adding(days: -200), through: Self.today.adding(days: 31))
        return Set(entries)
    }

    mutating func expectAllObserved(of count: Int = 24, _ comment: Comment? = nil) async throws {
        for person in 0..<count {
            let seen = try seen(of: Self.email(person)).compactMap { BackendEntry($0) }
            let live = try await live(person, of: count)
            #expect(Set(seen) == live && seen.count == live.count, comment)
        }
    }

    /// Returns the number of observations that were changed since a position.
    mutating func writtenCount(since position: Int64) throws -> Int {
        let count: Int64 = try acme.connection.run(
            "SELECT count(*) FROM realm.object WHERE kind = 'SeenRecord' AND position > \(position)")[0].value(0)
        return Int(count)
    }
}
