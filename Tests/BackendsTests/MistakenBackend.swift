import BackendContract
import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model

/// An adapter with one mistake, injected into a correct adapter.
struct MistakenBackend: TimeBackend {
    let right: any TimeBackend
    let mistake: Mistake

    var capabilities: BackendCapabilities { right.capabilities }

    private func mistaken(_ error: BackendError) -> BackendError {
        switch (mistake, error) {
        case (.repeatsAfterServerError, .outcomeUnknown(let reason, _)): .notProcessed(reason: reason, retryAfter: nil)
        case (.reportsUnknownAsRefused, .outcomeUnknown(let reason, _)): .refused([reason])
        case (.dropsRetryAfter, .notProcessed(let reason, _)): .notProcessed(reason: reason, retryAfter: nil)
        case (.refusesWithoutMessage, .refused): .refused([" "])
        default: error
        }
    }

    func create(_ submission: Submission) async throws(BackendError) -> String {
        var submission = submission
        if mistake == .createsTooLate { submission.before = .never }
        do throws(BackendError) {
            guard mistake == .ignoresCancellation else { return try await right.create(submission) }
            let (right, submission) = (right, submission)
            // An unstructured task is not cancelled with its parent.
            let created = await Task { () -> Result<String, BackendError> in
                do throws(BackendError) { return .success(try await right.create(submission)) } catch {
                    return .failure(error)
                }
            }.value
            return try created.get()
        } catch {
            throw mistaken(error)
        }
    }

    func update(_ id: String, to submission: Submission) async throws(BackendError) -> String {
        do throws(BackendError) {
            return mistake == .createsOnUpdate
                ? try await right.create(submission) : try await right.update(id, to: submission)
        } catch {
            throw mistaken(error)
        }
    }

    func delete(
        _ id: String, of person: BackendPerson, before deadline: WriteDeadline
    ) async throws(BackendError) {
        let deadline = mistake == .deletesTooLate ? .never : deadline
        do throws(BackendError) {
            try await right.delete(id, of: person, before: deadline)
        } catch {
            throw mistaken(error)
        }
    }

    func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry? {
        let owner = mistake == .ignoresOwner ? EconomicFixture.ana : person
        do throws(BackendError) { return try await right.readBack(id, of: owner) } catch { throw mistaken(error) }
    }

    func lookUp(
        marker: String, of person: BackendPerson, on day: Day
    ) async throws(BackendError) -> [BackendEntry] {
        do throws(BackendError) {
            return mistake == .ignoresMarker
                ? try await right.entries(of: person, from: day, through: day)
                : try await right.lookUp(marker: marker, of: person, on: day)
        } catch {
            throw mistaken(error)
        }
    }

    func entries(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> [BackendEntry] {
        let last = mistake == .truncatesListing ? through.adding(days: -1) : through
        do throws(BackendError) {
            return try await right.entries(of: person, from: from, through: last)
        } catch {
            throw mistaken(error)
        }
    }

    func changes(of people: [BackendPerson], since cursor: String?) async throws(BackendError) -> BackendChanges {
        do throws(BackendError) {
            let requested = mistake == .reportsChangesOfOthers ? [EconomicFixture.ana, EconomicFixture.bo] : people
            var changes = try await right.changes(of: requested, since: cursor)
            // The cursor advances beyond the dropped change.
            if mistake == .losesChanges { _ = changes.changes.popLast() }
            return changes
        } catch {
            throw mistaken(error)
        }
    }

    func listing(
        of people: [BackendPerson], from: Day, through: Day
    ) async throws(BackendError) -> BackendListing {
        let requested = mistake == .listsOtherPeople ? [SAPFixture.ana, SAPFixture.bo] : people
        do throws(BackendError) {
            let last = mistake == .listsOtherDays ? through.adding(days: 1) : through
            var listing = try await right.listing(of: requested, from: from, through: last)
            if mistake == .omitsListedRecords { _ = listing.entries[SAPFixture.ana.email]?.popLast() }
            if mistake == .omitsUnreadablePeople { listing.unreadable = [] }
            return listing
        } catch {
            if mistake == .returnsEmptyListingOnFailure { return BackendListing(from: from) }
            throw error
        }
    }

    func people() async throws(BackendError) -> [BackendPersonProposal] {
        let people = try await right.people()
        return mistake == .listsPeopleTwice ? people + people.prefix(1) : people
    }

    func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        do throws(BackendError) {
            var data = try await right.reportingData(of: person)
            if mistake == .changesIDs { data.templates[0].id = UUID() }
            return data
        } catch {
            throw mistaken(error)
        }
    }
}

/// The harness of an adapter with a mistake.
struct MistakenHarness: BackendHarness {
    let right: any BackendHarness
    let mistake: Mistake

    func backend(_ access: BackendAccess) -> any TimeBackend {
        MistakenBackend(right: right.backend(access), mistake: mistake)
    }

    var person: BackendPerson { right.person }
    var otherPerson: BackendPerson { right.otherPerson }
    var firstDay: Day { right.firstDay }
    var references: [String: String] { right.references }
    var otherReferences: [String: String] { right.otherReferences }
    var invalidReferences: [String: String] { right.invalidReferences }
    var unknownID: String { right.unknownID }

    func behave(_ behaviour: BackendBehaviour) async throws { try await right.behave(behaviour) }
    func approve(_ id: String) async throws { try await right.approve(id) }
    func reject(_ id: String) async throws { try await right.reject(id) }
}
