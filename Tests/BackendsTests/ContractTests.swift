import BackendContract
import BackendProtocol
import Backends
import Model
import Testing

@Suite struct ContractTests {
    static func checks(_ capabilities: BackendCapabilities) -> [Contract.Check] {
        Contract.checks.filter { $0.applies(to: capabilities) }
    }

    static let ofSAP = checks(
        BackendCapabilities(
            approvedRecord: .isReplaced, hasRejection: true, durationStepSeconds: 36, listsEverybody: true))
    static let ofEconomic = checks(
        BackendCapabilities(
            approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 36, tellsChanges: true,
            tellsPeople: true))

    @Test(arguments: ofSAP) func sapKeepsTheContract(check: Contract.Check) async throws {
        try await SandboxFixture.run { sap in try await check.run(SAPHarness(fixture: sap)) }
    }

    @Test(arguments: ofEconomic) func economicKeepsTheContract(check: Contract.Check) async throws {
        try await EconomicFixture.run { economic in try await check.run(EconomicHarness(fixture: economic)) }
    }

    @Test func oneRunTellsAllChecks() async throws {
        try await EconomicFixture.run { economic in
            let report = await Contract.run(EconomicHarness(fixture: economic))
            #expect(report.failures.isEmpty, "\(report)")
            #expect(report.lines.map(\.name) == Contract.checks.map(\.name))
            let skipped = report.lines.filter { $0.outcome == .skipped("the back end has no such thing") }
            #expect(
                skipped.map(\.name) == [
                    "an approved entry is replaced", "a rejected entry says so, and can be corrected",
                ] + Contract.checks.map(\.name).filter { $0.contains("everybody") || $0.hasPrefix("a person without") })
        }
    }

    /// Each mistake is found by the check it concerns.
    @Test(arguments: Mistake.allCases.filter { $0.isOfListing }) func aMistakeInAListingIsFound(
        mistake: Mistake
    ) async throws {
        try await SandboxFixture.run { sap in
            let harness = MistakenHarness(right: SAPHarness(fixture: sap), mistake: mistake)
            let check = try #require(Contract.checks.first { $0.name == mistake.foundBy })
            await #expect(throws: Contract.Failure.self) { try await check.run(harness) }
        }
    }

    @Test(arguments: Mistake.allCases.filter { !$0.isOfListing }) func aMistakeIsFound(mistake: Mistake) async throws {
        try await EconomicFixture.run(settings: { $0.totalMax = .seconds(25) }) { economic in
            let harness = MistakenHarness(right: EconomicHarness(fixture: economic), mistake: mistake)
            let check = try #require(Contract.checks.first { $0.name == mistake.foundBy })
            await #expect(throws: Contract.Failure.self) { try await check.run(harness) }
        }
    }
}

/// Mistakes that adapters make.
enum Mistake: CaseIterable {
    case repeatsAfterServerError, forgetsMarker, cutsListing, ignoresOwner, updatesAnew, takesOpenForRefused
    case losesRetryAfter, changesIDs, swallowsCancellation, saysNothing, losesChanges, tellsAnothersChanges
    case createsTooLate, deletesTooLate, tellsPeopleTwice
    case listsFewer, listsStrangers, listsBeyond, takesAFailureForAnEnd, saysNothingOfWhoIsUnknown

    var isOfListing: Bool {
        switch self {
        case .listsFewer, .listsStrangers, .listsBeyond, .takesAFailureForAnEnd, .saysNothingOfWhoIsUnknown: true
        default: false
        }
    }

    var foundBy: String {
        switch self {
        case .repeatsAfterServerError: "a server error after a write leaves its outcome open"
        case .forgetsMarker: "a created entry is found by its marker, once"
        case .cutsListing: "a listing holds both its bounds, and nothing beyond"
        case .ignoresOwner: "another person's record is no record"
        case .updatesAnew: "a changed entry has its new values alone"
        case .takesOpenForRefused: "a lost answer leaves a write's outcome open"
        case .losesRetryAfter: "too many requests are tried later, not before the time named"
        case .changesIDs: "reporting data is the same when nothing has changed"
        case .swallowsCancellation: "a call ends when its task is cancelled"
        case .saysNothing: "what cannot be is refused in words, and not written"
        case .losesChanges: "what is written while changes are read is told"
        case .listsFewer, .listsStrangers: "a listing of everybody has each person's records, and nobody else's"
        case .listsBeyond: "a listing of everybody has its last day, and nothing beyond its days"
        case .takesAFailureForAnEnd: "a listing of everybody that fails tells nothing"
        case .saysNothingOfWhoIsUnknown: "a person without references costs the others nothing"
        case .createsTooLate, .deletesTooLate: "a write whose time is over is not sent"
        case .tellsPeopleTwice: "the people who may register are told once each, and not as barred"
        case .tellsAnothersChanges: "a record is told as its person's, and to nobody who did not ask"
        }
    }
}
