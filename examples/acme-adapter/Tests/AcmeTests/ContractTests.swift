import BackendContract
import BackendProtocol
import Essentials
import Model
import Testing

@testable import Acme

@Test func acmeKeepsTheContract() async throws {
    let report = await Contract.run(AcmeHarness())
    print(report)  // one line per check: passed, FAILED: reason, skipped: reason
    #expect(report.failures.isEmpty, "\(report)")
}

/// A harness that gives the contract access to Acme.
struct AcmeHarness: BackendHarness {
    let books = StandIn()
    let person = BackendPerson(email: "ana@example.com", reference: ["employee": "ana"])
    let otherPerson = BackendPerson(email: "bo@example.com", reference: ["employee": "bo"])
    let firstDay = Day(daysSinceEpoch: 20_000)
    let references = ["Task": "17"]
    let otherReferences = ["Task": "23"]
    let impossibleReferences = ["Task": "99"]
    let unknownID = "999999"

    func backend(_ access: BackendAccess) -> any TimeBackend {
        AcmeBackend { [books] call in
            switch access {
            case .granted: try await books.answer(call, token: "right")
            case .wrongCredentials: try await books.answer(call, token: "wrong")
            case .nowhere: throw AcmeNotReached()
            }
        }
    }

    func behave(_ behaviour: BackendBehaviour) async throws { await books.behave(behaviour) }
    func approve(_ id: String) async throws { await books.approve(Int(id)) }
    func reject(_ id: String) async throws { throw Impossible("Acme has no rejection") }
}
