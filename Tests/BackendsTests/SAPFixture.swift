import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import Sandbox

/// A sandbox of its own with a small organisation, and an adapter connected to it.
struct SAPFixture: EmulatorClient {
    let client = Client()
    let url: String
    let settings: SAPSettings
    let backend: SAPBackend

    static let today = day("2015-04-15")
    static let ana = person("ana", partner: 1)
    static let bo = person("bo", partner: 2)

    static func day(_ text: String) -> Day {
        guard let day = Day(text) else { preconditionFailure("\(text) is not a day") }
        return day
    }

    static func guid(_ number: Int) -> String {
        let digits = String(number)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    static func person(_ name: String, partner: Int) -> BackendPerson {
        BackendPerson(
            email: name + "@example.com",
            reference: [
                "personWorkAgreementExternalId": "O'" + name, "companyCode": "1010",
                "businessPartnerUuid": guid(partner),
            ])
    }

    static let organisation = """
        {"people": [
          {"personWorkAgreementExternalId": "O'ana", "companyCode": "1010", "businessPartnerUuid": "\(guid(1))",
           "name": "Ana", "validFrom": "2015-01-01", "validTo": "2015-12-31", "rehiredOn": "2017-01-01"},
          {"personWorkAgreementExternalId": "O'bo", "companyCode": "1010", "businessPartnerUuid": "\(guid(2))",
           "name": "Bo"}],
         "customers": [
          {"businessPartner": "1000001", "businessPartnerUuid": "\(guid(11))", "name": "Ægir & Sons"}],
         "projects": [
          {"projectUuid": "\(guid(21))", "project": "P1", "description": "Harbour", "customerUuid": "\(guid(11))",
           "startDate": "2015-01-01", "processingStatus": "10",
           "elements": [
            {"projectElementUuid": "\(guid(31))", "projectElement": "P1.1", "description": "Piers"},
            {"projectElementUuid": "\(guid(32))", "projectElement": "P1.2", "description": "Cranes"},
            {"projectElementUuid": "\(guid(33))", "projectElement": "P1.3", "description": "Shut",
             "timeRecordingBlocked": true}],
           "teamMembers": ["\(guid(1))", "\(guid(2))"]},
          {"projectUuid": "\(guid(22))", "project": "P2", "description": "Overhead", "elements": [
            {"projectElementUuid": "\(guid(34))", "projectElement": "P2.1", "description": "Meetings"}],
           "teamMembers": ["\(guid(1))"]},
          {"projectUuid": "\(guid(23))", "project": "P3", "description": "Old", "timeRecordingBlocked": true,
           "elements": [{"projectElementUuid": "\(guid(35))", "projectElement": "P3.1", "description": "Gone"}],
           "teamMembers": ["\(guid(1))", "\(guid(2))"]}]}
        """

    /// Runs `body` against a new sandbox and stops the sandbox afterwards.
    static func run(
        password: String = "sandbox", state: String? = nil, settings change: (inout SAPSettings) -> Void = { _ in },
        _ body: (SAPFixture) async throws -> Void
    ) async throws {
        let emulator = try SAPEmulator(state: state)
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            var settings = SAPSettings(baseURL: "http://127.0.0.1:\(port)", user: "FIELDPOST", password: password)
            change(&settings)
            let fixture = SAPFixture(settings: settings)
            if state == nil { _ = try await fixture.post("/sandbox/organisation", organisation) }
            try await body(fixture)
        }
    }

    private init(settings: SAPSettings) {
        url = settings.baseURL
        self.settings = settings
        backend = SAPBackend(settings, client: client, today: { SAPFixture.today })
    }

    // MARK: Test interface of the sandbox

    struct Recorded: Decodable {
        let record, person, date, hours, note, wbsElement, status: String
        let predecessor: String?
        let cancelled: Bool
    }

    func recorded() async throws -> [Recorded] { try await recorded(as: Recorded.self) }

    // MARK: Calls

    static func submission(
        _ entry: UUID = UUID(), of person: BackendPerson = ana, on day: String = "2015-03-30", seconds: Int = 5400,
        text: String? = "Ørsted \"1\"", element: String? = "P1.1"
    ) -> Submission {
        Submission(
            marker: EntryMarker.marker(of: entry), person: person, day: self.day(day), durationSeconds: seconds,
            text: text, references: element.map { ["Accounting code": $0] } ?? [:])
    }
}

extension BackendError {
    /// The case's name, for errors whose text does not matter.
    var kind: String {
        switch self {
        case .refused: "refused"
        case .notProcessed: "notProcessed"
        case .outcomeUnknown: "outcomeUnknown"
        case .unauthorized: "unauthorized"
        case .deadlineExceeded: "deadlineExceeded"
        }
    }
}
