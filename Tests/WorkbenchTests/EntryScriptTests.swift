import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import RealmGateway
@testable import Workbench

/// One entry's realm and back end, as far as a script sees them: the gateway's own rules, and a submitter in one step.
private struct ModelServer {
    private(set) var object: DeviceObject?
    private var position: Int64 = 0
    private var isDeleted = false
    private var isEdited = false
    private let isRefused: Bool

    init(isRefused: Bool) { self.isRefused = isRefused }

    var seen: SeenEntry? { object.flatMap { SeenEntry($0) } }

    mutating func apply(_ mutation: Mutation) -> MutationOutcome {
        let current: StoredObject? = isDeleted ? .tombstone : object.map { .live(fields: $0.fields) }
        let change: MutationChange
        do throws(MutationProblem) {
            change = try MutationRules.decide(
                Mutation(operation: mutation.operation, kind: .timeEntry, id: mutation.id, fields: mutation.fields),
                current: current)
        } catch {
            return .rejected(code: error.code.rawValue, detail: error.detail)
        }
        switch change {
        case .insert(let fields): write(fields)
        case .merge(let fields): merge(fields)
        case .tombstone: remove()
        case .requestDeletion: merge(Array(#"{"deleteRequested":true}"#.utf8))
        case .unchanged: break
        }
        isEdited = true
        return .accepted(position: position)
    }

    /// - Returns: Whether there was something to do.
    mutating func submit() -> Bool {
        guard isEdited, let fields = object.flatMap({ try? JSONObject($0.fields) }) else { return false }
        if fields.isTrue("deleteRequested") {
            remove()
            return true
        }
        guard fields.isTrue("submitRequested") else { return false }
        if seen?.status != .submitted {
            merge(Array(#"{"status":"submitted"}"#.utf8))
            isEdited = true
            return true
        }
        merge(Array(#"{"status":"\#(isRefused ? "invalid" : "released")","backendId":"1"}"#.utf8))
        isEdited = false
        return true
    }

    private mutating func write(_ fields: [UInt8]) {
        position += 1
        object = DeviceObject(position: position, fields: fields)
    }

    private mutating func merge(_ patch: [UInt8]) {
        guard let object, let old = try? JSONObject(object.fields), let new = try? JSONObject(patch) else { return }
        write(old.merging(new))
    }

    private mutating func remove() {
        position += 1
        object = nil
        isDeleted = true
        isEdited = false
    }
}

@Suite(.ownThreads) struct EntryScriptTests {
    @Test(arguments: EntryVariant.allCases)
    func everyVariantEndsAsPlanned(variant: EntryVariant) throws {
        var server = ModelServer(isRefused: false)
        var script = EntryScript(plan(variant))
        try run(&script, &server)
        #expect(script.phase == .done)
        expectEnd(of: variant, server)
    }

    /// The program may end after any mutation: the next run continues from the realm's content.
    @Test(arguments: EntryVariant.allCases, 0...6)
    func secondRunResumes(variant: EntryVariant, mutationCount: Int) throws {
        var server = ModelServer(isRefused: false)
        var first = EntryScript(plan(variant))
        try run(&first, &server, mutationsMax: mutationCount)
        var second = EntryScript(plan(variant))
        second.begin(seen: server.seen)
        if let mutation = second.evaluate(server.seen) {
            second.take(server.apply(mutation), of: mutation)
        }
        try run(&second, &server)
        #expect(second.phase == .done)
        expectEnd(of: variant, server)
    }

    @Test func anInvalidEntryIsDoneWhenThatIsExpected() throws {
        var server = ModelServer(isRefused: true)
        var script = EntryScript(plan(.plain, expectation: .invalid(.noDuration)))
        try run(&script, &server)
        #expect(script.phase == .done)
        var released = EntryScript(plan(.plain))
        var refusing = ModelServer(isRefused: true)
        try run(&released, &refusing)
        #expect(released.phase == .failed("it is invalid"))
    }

    @Test func positionOfTheEditIsNotItsResult() {
        var script = EntryScript(plan(.editedAfter))
        script.begin(seen: seen(5, .released, text: "Survey"))
        let edit = script.evaluate(seen(5, .released, text: "Survey"))
        #expect(script.evaluate(seen(6, .released, text: "Edited: Survey")) == nil)
        guard let edit else {
            Issue.record("it does not edit the text")
            return
        }
        script.take(.accepted(position: 6), of: edit)
        #expect(script.evaluate(seen(6, .released, text: "Edited: Survey")) == nil)
        #expect(!script.isFinished, "the back end has not answered the edit")
        _ = script.evaluate(seen(8, .submitted, text: "Edited: Survey"))
        #expect(!script.isFinished)
        _ = script.evaluate(seen(9, .released, text: "Edited: Survey"))
        #expect(script.phase == .done)
    }

    /// A database that was restored may have lost the release, the wish and the edit: devices send them again.
    @Test func editedEntryLostInARestoreIsSubmittedAgain() throws {
        var script = EntryScript(plan(.editedAfter))
        script.begin(seen: seen(5, .released, text: "Survey"))
        let mutation = script.evaluate(seen(5, .released, text: "Survey"))
        let edit = try #require(mutation)
        script.take(.accepted(position: 6), of: edit)
        for (position, status) in zip(Int64(20)..., [EntryStatus.draft, .draft, .submitted]) {
            #expect(script.evaluate(seen(position, status, text: "Edited: Survey")) == nil)
            #expect(!script.isFinished, "\(status)")
        }
        _ = script.evaluate(seen(23, .released, text: "Edited: Survey"))
        #expect(script.phase == .done)
    }

    @Test func rejectionEndsTheScriptExceptOfAnEarlierMistake() throws {
        var script = EntryScript(plan(.plain))
        try take(&script, .rejected(code: "closed", detail: "it is recorded"))
        #expect(script.phase == .failed("the gateway rejects: it is recorded (closed)"))
        var mistake = EntryScript(plan(.deletedAfter))
        try take(&mistake, .rejected(code: "deleted", detail: ""))
        #expect(mistake.phase == .done)
    }

    /// The gateway folds what comes in one request: a draft deleted at once never stands on the stream.
    @Test func mistakeThatWasNeverShownEndsWithItsDeleteResponse() throws {
        var script = EntryScript(plan(.deletedBefore))
        let put = try #require(try script.next(draft: draft))
        let delete = try #require(try script.next(draft: draft))
        script.take(.accepted(position: 7), of: put)
        #expect(script.evaluate(nil) == nil)
        #expect(!script.isFinished, "only the put was answered")
        script.take(.accepted(position: 7), of: delete)
        #expect(script.evaluate(nil) == nil)
        #expect(script.phase == .done)
    }

    private func take(_ script: inout EntryScript, _ outcome: MutationOutcome) throws {
        let mutation = try #require(try script.next(draft: draft))
        script.take(outcome, of: mutation)
    }

    @Test func plansOfAnOrganisationHaveTheStatedShares() {
        let organisation = GeneratedOrganisation.make(people: 100, seed: 3)
        let plans = organisation.entries.flatMap(EntryPlan.plans)
        #expect(Set(plans.map(\.id)).count == plans.count)
        #expect(plans.filter { !$0.variant.isMistake }.map(\.entry) == organisation.entries)
        let counts = Dictionary(grouping: plans, by: \.variant).mapValues {
            $0.count * 1000 / organisation.entries.count
        }
        #expect((80...120).contains(counts[.correctedBefore] ?? 0), "\(counts)")
        #expect((35...65).contains(counts[.editedAfter] ?? 0), "\(counts)")
        #expect((20...40).contains(counts[.deletedBefore] ?? 0), "\(counts)")
        #expect((12...28).contains(counts[.deletedAfter] ?? 0), "\(counts)")
        #expect(organisation.entries.flatMap(EntryPlan.plans) == plans, "the same in every run")
    }

    // MARK: Driving

    private func run(
        _ script: inout EntryScript, _ server: inout ModelServer, mutationsMax: Int = .max
    ) throws {
        var mutationCount = 0
        for _ in 0..<50 where !script.isFinished {
            let mutation = try script.next(draft: draft) ?? (script.isWaiting ? script.evaluate(server.seen) : nil)
            if let mutation {
                guard mutationCount < mutationsMax else { return }
                mutationCount += 1
                script.take(server.apply(mutation), of: mutation)
            } else if !script.isFinished {
                _ = server.submit()
            }
        }
    }

    private func expectEnd(of variant: EntryVariant, _ server: ModelServer) {
        let plan = plan(variant)
        if variant.isMistake {
            #expect(server.object == nil)
        } else {
            #expect(server.seen?.status == .released)
            #expect(server.seen?.text == plan.text)
            #expect(server.object?.decoded(as: TimeEntry.self)?.durationSeconds == plan.entry.durationSeconds)
        }
    }

    private func draft(_ text: String, _ seconds: Int, _ isSubmitted: Bool) throws -> [UInt8] {
        Array(
            try JSONEncoder().encode(
                TimeEntry(text: text, durationSeconds: seconds, submitRequested: isSubmitted ? true : nil)))
    }

    private func seen(_ position: Int64, _ status: EntryStatus, text: String) -> SeenEntry {
        SeenEntry(
            position: position, status: status, text: text, isSubmitRequested: true)
    }

    private func plan(
        _ variant: EntryVariant, expectation: PlannedEntry.Expectation = .released
    ) -> EntryPlan {
        let entry = PlannedEntry(
            id: StableID.uuid("entry"), person: "emp001", day: Day(daysSinceEpoch: 16_524), durationSeconds: 3600,
            project: "p1", accountingCode: "W1-p1", text: "Survey", sourceRow: 1, expectation: expectation)
        return EntryPlan(entry: entry, id: entry.id, variant: variant)
    }
}
