import BackendContract
import BackendProtocol
import Backends
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct ContractTests {
    static func checks(_ capabilities: BackendCapabilities) -> [Contract.Check] {
        Contract.checks.filter { $0.applies(to: capabilities) }
    }

    static let checksOfSAP = checks(
        BackendCapabilities(
            approvedRecord: .isReplaced, hasRejection: true, durationStepSeconds: 36, supportsBulkListing: true))
    static let checksOfEconomic = checks(
        BackendCapabilities(
            approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 36, supportsChangeFeed: true,
            supportsPeopleListing: true))

    @Test(arguments: checksOfSAP) func sapMeetsTheContract(check: Contract.Check) async throws {
        try await SAPFixture.run { sap in try await check.run(SAPHarness(fixture: sap)) }
    }

    @Test(arguments: checksOfEconomic) func economicMeetsTheContract(check: Contract.Check) async throws {
        try await EconomicFixture.run { economic in try await check.run(EconomicHarness(fixture: economic)) }
    }

    @Test func reportListsAllChecks() async throws {
        try await EconomicFixture.run { economic in
            let report = await Contract.run(EconomicHarness(fixture: economic))
            #expect(report.failures.isEmpty, "\(report)")
            #expect(report.lines.map(\.name) == Contract.checks.map(\.name))
            let skipped = report.lines.filter { $0.outcome == .skipped("not supported by the back end") }
            #expect(
                skipped.map(\.name) == [
                    "an approved entry is replaced", "a rejected entry is reported and can be corrected",
                ] + Contract.checks.map(\.name).filter { $0.contains("bulk listing") })
        }
    }

    /// Each mistake is detected by the check that concerns it.
    @Test(arguments: Mistake.allCases.filter { $0.isOfListing }) func checksDetectMistakesInListings(
        mistake: Mistake
    ) async throws {
        try await SAPFixture.run { sap in
            let harness = MistakenHarness(right: SAPHarness(fixture: sap), mistake: mistake)
            let check = try #require(Contract.checks.first { $0.name == mistake.detectingCheck })
            await #expect(throws: Contract.Failure.self) { try await check.run(harness) }
        }
    }

    @Test(arguments: Mistake.allCases.filter { !$0.isOfListing }) func checksDetectMistakes(
        mistake: Mistake
    ) async throws {
        try await EconomicFixture.run(settings: { $0.totalMax = .seconds(25) }) { economic in
            let harness = MistakenHarness(right: EconomicHarness(fixture: economic), mistake: mistake)
            let check = try #require(Contract.checks.first { $0.name == mistake.detectingCheck })
            await #expect(throws: Contract.Failure.self) { try await check.run(harness) }
        }
    }
}

/// Mistakes of adapters.
enum Mistake: CaseIterable {
    case repeatsAfterServerError, ignoresMarker, truncatesListing, ignoresOwner, createsOnUpdate
    case reportsUnknownAsRefused, dropsRetryAfter, changesIDs, ignoresCancellation, refusesWithoutMessage, losesChanges
    case reportsChangesOfOthers, createsTooLate, deletesTooLate, listsPeopleTwice
    case omitsListedRecords, listsOtherPeople, listsOtherDays, returnsEmptyListingOnFailure, omitsUnreadablePeople

    var isOfListing: Bool {
        switch self {
        case .omitsListedRecords, .listsOtherPeople, .listsOtherDays, .returnsEmptyListingOnFailure,
            .omitsUnreadablePeople:
            true
        default: false
        }
    }

    var detectingCheck: String {
        switch self {
        case .repeatsAfterServerError: "a server error after a write leaves its outcome unknown"
        case .ignoresMarker: "a created entry is found once by its marker"
        case .truncatesListing: "a listing includes both limits and nothing outside them"
        case .ignoresOwner: "a record of another person is not accessible"
        case .createsOnUpdate: "an updated entry has only its new values"
        case .reportsUnknownAsRefused: "a lost response leaves a write's outcome unknown"
        case .dropsRetryAfter: "429 defers every call until Retry-After"
        case .changesIDs: "reporting data is stable while nothing changes"
        case .ignoresCancellation: "a call ends when its task is cancelled"
        case .refusesWithoutMessage: "an invalid entry is refused with a message and not written"
        case .losesChanges: "records written while changes are read are reported"
        case .omitsListedRecords, .listsOtherPeople: "a bulk listing has the records of each requested person only"
        case .listsOtherDays: "a bulk listing covers its last day and nothing outside its days"
        case .returnsEmptyListingOnFailure: "a bulk listing fails on a server error"
        case .omitsUnreadablePeople: "a bulk listing reports a person without references as unreadable"
        case .createsTooLate, .deletesTooLate: "a write is not sent after its deadline"
        case .listsPeopleTwice: "people who may register time are listed once and not as barred"
        case .reportsChangesOfOthers: "changes name the owner and are limited to the requested people"
        }
    }
}
