import BackendContract
import BackendProtocol
import Backends
import Essentials
import Model
import TestSupport

/// A harness that maps the contract's behaviours to the fault switches of both emulators.
protocol EmulatorHarness: BackendHarness {
    associatedtype Fixture: EmulatorClient
    var fixture: Fixture { get }
}

extension EmulatorHarness {
    var firstDay: Day { SAPFixture.day("2015-03-30") }

    /// Sets the behaviour; a note has room for exactly the longest text and the marker.
    func behave(_ behaviour: BackendBehaviour) async throws {
        try await fixture.behave(behaviour)
        try await fixture.switches(
            """
            {"textLengthMax": \(40 + 1 + EntryMarker.length), "textUnit": "utf16", "convertsLineEnds": false,
             "trimsTexts": false, "replacesAstral": false}
            """)
    }

    func alterTexts() async throws {
        try await fixture.switches(#"{"convertsLineEnds": true, "trimsTexts": true, "replacesAstral": true}"#)
    }
}

struct SAPHarness: EmulatorHarness {
    let fixture: SAPFixture

    func backend(_ access: BackendAccess) -> any TimeBackend {
        var settings = fixture.settings
        switch access {
        case .granted: return fixture.backend
        case .wrongCredentials: settings.password = "wrong"
        case .unreachable: settings.baseURL = "http://127.0.0.1:1"
        }
        return SAPBackend(settings, client: fixture.client, today: { SAPFixture.today })
    }

    let person = SAPFixture.ana
    let otherPerson = SAPFixture.bo
    let references = ["Accounting code": "P1.1"]
    let otherReferences = ["Accounting code": "P2.1"]
    let invalidReferences = ["Accounting code": "P9.9"]
    let unknownID = "000000999999"

    func approve(_ id: String) async throws { try await move(id, "30") }

    func reject(_ id: String) async throws { try await move(id, "40") }

    private func move(_ id: String, _ status: String) async throws {
        try await fixture.post("/sandbox/approvals", #"{"record": "\#(id)", "status": "\#(status)"}"#)
    }
}

struct EconomicHarness: EmulatorHarness {
    let fixture: EconomicFixture

    func backend(_ access: BackendAccess) -> any TimeBackend {
        var settings = fixture.settings
        switch access {
        case .granted: return fixture.backend
        case .wrongCredentials: settings.agreementGrantToken = "wrong"
        case .unreachable: settings.baseURL = "http://127.0.0.1:1"
        }
        return EconomicBackend(settings, client: fixture.client, today: { EconomicFixture.today })
    }

    let person = EconomicFixture.ana
    let otherPerson = EconomicFixture.bo
    let references = ["Project": "11", "Activity": "1"]
    let otherReferences = ["Project": "13", "Activity": "2"]
    let invalidReferences = ["Project": "10", "Activity": "1"]
    let unknownID = "999999"

    func approve(_ id: String) async throws {
        try await fixture.change(#"{"number": \#(id), "isApproved": true}"#)
    }

    func reject(_ id: String) async throws { throw Impossible("e-conomic has no rejection") }
}
