import BackendContract
import BackendProtocol
import Essentials
import Foundation
import Model
import Testing

@testable import Acme

@Test func acmeMeetsTheContract() async throws {
    let report = await Contract.run(AcmeHarness())
    print(report)  // one line per check: passed, FAILED: reason, skipped: reason
    #expect(report.failures.isEmpty, "\(report)")
}

/// A harness that runs the contract's checks against the emulator.
struct AcmeHarness: BackendHarness {
    let emulator = AcmeEmulator()
    let person = BackendPerson(email: "ana@example.com", reference: ["employee": "ana"])
    let otherPerson = BackendPerson(email: "bo@example.com", reference: ["employee": "bo"])
    let firstDay = Day(daysSinceEpoch: 20_000)
    let references = ["Task": "17"]
    let otherReferences = ["Task": "23"]
    let invalidReferences = ["Task": "99"]
    let unknownID = "999999"

    func backend(_ access: BackendAccess) -> any TimeBackend {
        AcmeBackend { [emulator] call in
            switch access {
            case .granted: try await emulator.respond(to: call, token: "right")
            case .wrongCredentials: try await emulator.respond(to: call, token: "wrong")
            case .unreachable: throw AcmeUnreachable()
            }
        }
    }

    func behave(_ behaviour: BackendBehaviour) async throws { await emulator.behave(behaviour) }
    func approve(_ id: String) async throws { await emulator.approve(Int(id)) }
    func reject(_ id: String) async throws { throw Impossible("Acme has no rejection") }
}

/// Classifications of HTTP statuses and rows that the contract does not check.
@Suite struct AcmeErrorTests {
    private static func backend(respondingWith response: AcmeResponse) -> AcmeBackend {
        AcmeBackend { _ in response }
    }

    private static let person = AcmeHarness().person
    private static let submission = Submission(
        marker: EntryMarker.marker(of: UUID()), person: person, day: Day(daysSinceEpoch: 20_000),
        durationSeconds: 3600, text: nil, references: ["Task": "17"])

    @Test(arguments: [400, 404, 408, 422, 429, 500, 503]) func failedReadIsRetried(status: Int) async {
        let backend = Self.backend(respondingWith: AcmeResponse(status: status, text: "failed", retryAfter: 7))
        await #expect(throws: BackendError.notProcessed(reason: "failed", retryAfter: .seconds(7))) {
            try await backend.reportingData(of: Self.person)
        }
    }

    @Test(arguments: [
        (400, BackendError.refused(["failed"])),
        (408, .notProcessed(reason: "failed", retryAfter: .seconds(7))),
        (422, .refused(["failed"])),
        (429, .notProcessed(reason: "failed", retryAfter: .seconds(7))),
        (503, .outcomeUnknown(reason: "failed", retryAfter: .seconds(7))),
    ]) func onlyValidationErrorRefusesWrite(status: Int, error: BackendError) async {
        let backend = Self.backend(respondingWith: AcmeResponse(status: status, text: "failed", retryAfter: 7))
        await #expect(throws: error) { try await backend.create(Self.submission) }
    }

    /// A row that cannot be read exists: no call concludes that there is no record.
    @Test func unreadableRowHidesNoRecord() async throws {
        let row = AcmeRow(number: 1, employee: "ana", day: "2026-03-30", task: 17, note: "", minutes: 60)
        var unreadable = row
        (unreadable.number, unreadable.day) = (2, "30 March")
        let backend = Self.backend(respondingWith: AcmeResponse(rows: [row, unreadable]))
        let day = try #require(Day(row.day))
        let records = try await backend.records(of: Self.person, from: day, through: day)
        #expect(records.entries.map(\.id) == ["1"])
        #expect(records.unreadable.map(\.id) == ["2"])
        #expect(try await backend.readBack("1", of: Self.person)?.day == day)
        await #expect(throws: BackendError.self) {
            try await backend.entries(of: Self.person, from: day, through: day)
        }
        await #expect(throws: BackendError.self) {
            try await backend.lookUp(marker: "#x#", of: Self.person, on: day)
        }
        await #expect(throws: BackendError.self) { try await backend.readBack("2", of: Self.person) }
    }
}
