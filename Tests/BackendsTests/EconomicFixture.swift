import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import Sandbox

/// An e-conomic sandbox of its own with a small organisation, and an adapter connected to it.
struct EconomicFixture: EmulatorClient {
    let client = Client()
    let url: String
    let settings: EconomicSettings
    let backend: EconomicBackend

    static let ana = person("ana", 7)
    static let bo = person("bo", 8)
    static let today = SAPFixture.today

    static func person(_ name: String, _ number: Int) -> BackendPerson {
        BackendPerson(email: name + "@example.com", reference: ["employeeNumber": String(number)])
    }

    static let organisation = """
        {"employees": [{"number": 7, "name": "Ana", "email": "Ana@example.com"},
          {"number": 8, "name": "Bo", "email": "bo@example.com"}, {"number": 9, "name": "Gone", "isBarred": true}],
         "projects": [
          {"number": 10, "name": "Harbour", "isMainProject": true},
          {"number": 11, "name": "Piers", "mainProjectNumber": 10},
          {"number": 12, "name": "Cranes", "mainProjectNumber": 10},
          {"number": 13, "name": "Overhead"},
          {"number": 14, "name": "Closed", "isClosed": true},
          {"number": 15, "name": "Barred", "isBarred": true},
          {"number": 16, "name": "Empty group", "isMainProject": true}],
         "activities": [
          {"number": 1, "name": "Diving", "isAccessible": true},
          {"number": 2, "name": "Meetings", "isAccessible": true},
          {"number": 3, "name": "Shut"},
          {"number": 4, "name": "Hidden", "isAccessible": true, "hideInSearch": true}],
         "projectActivities": [
          {"number": 1, "projectNumber": 11, "activityNumber": 1},
          {"number": 2, "projectNumber": 11, "activityNumber": 2, "completed": true}]}
        """

    /// Runs `body` against a new sandbox and stops the sandbox afterwards.
    static func run(
        password: String = "sandbox-app:sandbox-grant", state: String? = nil,
        settings change: (inout EconomicSettings) -> Void = { _ in }, _ body: (EconomicFixture) async throws -> Void
    ) async throws {
        let emulator = try EconomicEmulator(state: state)
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            var settings = try #require(EconomicSettings(baseURL: "http://127.0.0.1:\(port)/", password: password))
            change(&settings)
            let fixture = EconomicFixture(settings: settings)
            if state == nil { _ = try await fixture.post("/sandbox/organisation", organisation) }
            try await body(fixture)
        }
    }

    private init(settings: EconomicSettings) {
        url = settings.baseURL
        self.settings = settings
        backend = EconomicBackend(settings, client: client, today: { EconomicFixture.today })
    }

    struct Recorded: Decodable {
        let number, employeeNumber, projectNumber, activityNumber: Int
        let date, text: String
        let numberOfHours: Double
        let isApproved, isDeleted: Bool
    }

    func recorded() async throws -> [Recorded] { try await recorded(as: Recorded.self) }

    /// Changes a time entry as another client does.
    func change(_ json: String) async throws { try await post("/sandbox/entries", json) }

    static func submission(
        _ entry: UUID = UUID(), of person: BackendPerson = ana, on day: String = "2015-03-30", seconds: Int = 5400,
        text: String? = "Ørsted \"1\"", project: String? = "11", activity: String? = "1"
    ) -> Submission {
        var references: [String: String] = [:]
        references["Project"] = project
        references["Activity"] = activity
        return Submission(
            marker: EntryMarker.marker(of: entry), person: person, day: SAPFixture.day(day),
            durationSeconds: seconds, text: text, references: references)
    }
}
