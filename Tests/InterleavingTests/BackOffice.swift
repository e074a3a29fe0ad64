import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import TestSupport

/// A current record, as returned by the emulator itself.
struct OfficeRecord {
    let id: String
    /// The back end's id of its person.
    let person: String
    let day: Day
    let hours: Hours
    let note: String
    let status: EntryStatus
    let references: [String: String]

    var text: String? { EntryMarker.split(note: note).text }
    var marker: String? { EntryMarker.split(note: note).marker }

    /// The entry of the record.
    func entry(of email: String) -> UUID {
        let record = BackendEntry(
            id: id, marker: marker, day: day, durationSeconds: hours.seconds, text: text, status: .released,
            references: references)
        return RealmContents.entryID(of: record, of: email)
    }
}

/// An action of a person in the office.
struct OfficeAct {
    let what: String
    /// Whether the record no longer exists under its number.
    var isGone = false
}

/// A back end, and the people in the office who work in it.
protocol BackOffice: EmulatorClient {
    /// The name of its kind, and of its emulator.
    static var kind: String { get }
    static var password: String { get }
    /// The choices for entries.
    static var references: [[String: String]] { get }

    init(url: String, client: Client) throws

    /// The back end's id of the person with this number.
    static func reference(_ number: Int) -> [String: String]
    /// The name of a person in records.
    static func name(_ number: Int) -> String
    /// The body of `POST /sandbox/organisation`.
    static func organisation(peopleCount: Int) -> String
    func records() async throws -> [OfficeRecord]

    /// Changes a record, its status, or deletes it.
    func act(on record: OfficeRecord, of person: BackendPerson, _ random: inout SplitMix64) async throws -> OfficeAct
    /// Creates a record.
    func create(for person: BackendPerson, on day: Day, _ random: inout SplitMix64) async throws
}

extension BackOffice {
    @discardableResult
    func control(_ path: String, _ json: String) async throws -> Int {
        try await client.send(Request("POST", url + path, body: Array(json.utf8))).status
    }

    /// The day before or after; the same two for both, so that records stay within these days.
    func neighbour(of day: Day) -> Day { day.adding(days: day.daysSinceEpoch % 2 == 0 ? 1 : -1) }

    static func seconds(_ random: inout SplitMix64) -> Int { 900 * Int.random(in: 1...40, using: &random) }
}

struct SAPOffice: BackOffice {
    static let kind = "sap"
    static let password = "sandbox"
    static let references = ["P1.1", "P1.2", "P2.1", "P2.2"].map { ["Accounting code": $0] }

    let url: String
    let client: Client
    let backend: SAPBackend

    init(url: String, client: Client) {
        (self.url, self.client) = (url, client)
        backend = SAPBackend(
            SAPSettings(baseURL: url, user: "FIELDPOST", password: Self.password), client: client,
            today: { Day(daysSinceEpoch: 20_000) })
    }

    static func name(_ number: Int) -> String { "P\(number)" }

    static func reference(_ number: Int) -> [String: String] {
        [
            "personWorkAgreementExternalId": name(number), "companyCode": "1010",
            "businessPartnerUuid": guid(1_000 + number),
        ]
    }

    private static func guid(_ number: Int) -> String {
        let digits = String(number)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    static func organisation(peopleCount: Int) -> String {
        let people = (0..<peopleCount).map {
            """
            {"personWorkAgreementExternalId": "\(name($0))", "companyCode": "1010", "name": "\($0)",
             "businessPartnerUuid": "\(guid(1_000 + $0))"}
            """
        }
        let partners = (0..<peopleCount).map { "\"\(guid(1_000 + $0))\"" }.joined(separator: ",")
        let projects = (1...2).map { project in
            let elements = (1...2).map {
                """
                {"projectElementUuid": "\(guid(10 * project + $0))", "projectElement": "P\(project).\($0)",
                 "description": "Work"}
                """
            }
            return """
                {"projectUuid": "\(guid(100 + project))", "project": "P\(project)", "description": "Project",
                 "elements": [\(elements.joined(separator: ","))], "teamMembers": [\(partners)]}
                """
        }
        return """
            {"people": [\(people.joined(separator: ","))], "customers": [],
             "projects": [\(projects.joined(separator: ","))]}
            """
    }

    private struct Line: Decodable {
        let record, person, date, hours, note, wbsElement, status: String
    }

    func records() async throws -> [OfficeRecord] {
        try await recorded(as: Line.self).compactMap { line in
            guard let day = Day(line.date), let hours = Hours(line.hours),
                let status: EntryStatus = ["20": .released, "30": .approved, "40": .rejected][line.status]
            else { return nil }
            return OfficeRecord(
                id: line.record, person: line.person, day: day, hours: hours, note: line.note, status: status,
                references: ["Accounting code": line.wbsElement])
        }
    }

    func act(
        on record: OfficeRecord, of person: BackendPerson, _ random: inout SplitMix64
    ) async throws -> OfficeAct {
        let choice = Int.random(in: 0..<10, using: &random)
        switch choice {
        case 0:
            try? await backend.delete(record.id, of: person, before: .never)
            return OfficeAct(what: "deletes \(record.id)", isGone: true)
        case 1, 2, 3:
            let day = choice == 3 ? neighbour(of: record.day) : record.day
            let seconds = choice == 1 ? Self.seconds(&random) : record.hours.seconds
            let text = choice == 2 ? "office \(random.next() % 1_000)" : record.text
            let new = try? await backend.update(
                record.id,
                to: Submission(
                    marker: record.marker ?? "", person: person, day: day, durationSeconds: seconds, text: text,
                    references: record.references))
            return OfficeAct(
                what: "changes \(record.id) to \(new ?? "nothing"), \(day), \(seconds) s, \(text ?? "no text")",
                isGone: new.map { $0 != record.id } ?? false)
        default:
            let code =
                switch record.status {
                case .approved, .rejected: "20"
                default: choice < 7 ? "30" : "40"
                }
            try await control("/sandbox/approvals", #"{"record": "\#(record.id)", "status": "\#(code)"}"#)
            return OfficeAct(what: "moves \(record.id) to \(code)")
        }
    }

    func create(for person: BackendPerson, on day: Day, _ random: inout SplitMix64) async throws {
        _ = try await backend.create(
            Submission(
                marker: "", person: person, day: day, durationSeconds: Self.seconds(&random), text: "elsewhere",
                references: Self.references[Int.random(in: 0..<4, using: &random)]))
    }
}

struct EconomicOffice: BackOffice {
    static let kind = "economic"
    static let password = "sandbox-app:sandbox-grant"
    static let references = [("11", "1"), ("11", "2"), ("12", "1"), ("12", "2")].map {
        ["Project": $0.0, "Activity": $0.1]
    }

    let url: String
    let client: Client

    static func name(_ number: Int) -> String { "\(100 + number)" }

    static func reference(_ number: Int) -> [String: String] { ["employeeNumber": name(number)] }

    static func organisation(peopleCount: Int) -> String {
        let people = (0..<peopleCount).map { #"{"number": \#(name($0)), "name": "Person"}"# }
        return """
            {"employees": [\(people.joined(separator: ","))],
             "projects": [{"number": 11, "name": "Roof"}, {"number": 12, "name": "Cellar"}],
             "activities": [{"number": 1, "name": "Digging", "isAccessible": true},
              {"number": 2, "name": "Thatching", "isAccessible": true}]}
            """
    }

    private struct Line: Decodable {
        let number, employeeNumber, projectNumber, activityNumber: Int
        let date, text: String
        let numberOfHours: Double
        let isApproved, isReconciled, isDeleted: Bool
    }

    func records() async throws -> [OfficeRecord] {
        try await recorded(as: Line.self).compactMap { line in
            guard !line.isDeleted, let day = Day(line.date) else { return nil }
            return OfficeRecord(
                id: "\(line.number)", person: "\(line.employeeNumber)", day: day,
                hours: Hours(hundredths: Int((line.numberOfHours * 100).rounded())), note: line.text,
                status: line.isReconciled ? .recorded : line.isApproved ? .approved : .released,
                references: ["Project": "\(line.projectNumber)", "Activity": "\(line.activityNumber)"])
        }
    }

    func act(
        on record: OfficeRecord, of person: BackendPerson, _ random: inout SplitMix64
    ) async throws -> OfficeAct {
        // Closes the books over recorded records.
        guard record.status != .recorded else { return OfficeAct(what: "leaves \(record.id)") }
        let choice = Int.random(in: 0..<10, using: &random)
        let change: String
        switch (record.status, choice) {
        case (.approved, 0..<3): change = #""isReconciled": true"#
        case (.approved, _): change = #""isApproved": false"#
        case (_, 0): change = #""isDeleted": true"#
        case (_, 1): change = #""numberOfHours": \#(Double(Self.seconds(&random)) / 3_600)"#
        case (_, 2):
            let text = "office \(random.next() % 1_000)"
            change = #""text": "\#(record.marker.map { EntryMarker.note(text: text, marker: $0) } ?? text)""#
        case (_, 4): change = #""date": "\(neighbour(of: record.day))""#
        case (_, 3):
            let other = Self.references[Int.random(in: 0..<4, using: &random)]
            change = #""projectNumber": \#(other["Project"] ?? ""), "activityNumber": \#(other["Activity"] ?? "")"#
        default: change = #""isApproved": true"#
        }
        try await control("/sandbox/entries", #"{"number": \#(record.id), \#(change)}"#)
        return OfficeAct(what: "\(record.id): \(change)", isGone: change.contains("isDeleted"))
    }

    func create(for person: BackendPerson, on day: Day, _ random: inout SplitMix64) async throws {
        let seconds = Self.seconds(&random)
        try await control(
            "/sandbox/entries",
            """
            {"employeeNumber": \(person.reference["employeeNumber"] ?? "0"), "projectNumber": 11, "activityNumber": 2,
             "date": "\(day)", "numberOfHours": \(Double(seconds) / 3_600), "text": "elsewhere"}
            """)
    }
}
