import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Maintains the copies of shared items, and the shares.
///
/// It recomputes from PostgreSQL the copies of the links that an event concerns, and writes the differences. So
/// duplicate, late and concurrent events have the same result.
struct ShareHandler: Handler {
    static let skipsUneditedKeys = true

    let limits: ShareLimits
    /// Delay before a link is reprocessed that was rejected at a limit.
    let retryWait: Duration
    let now: @Sendable () -> Timestamp
    private var directory = RealmDirectory()

    init(
        _ limits: ShareLimits = ShareLimits(), retryWait: Duration = .seconds(300),
        now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        self.limits = limits
        self.retryWait = retryWait
        self.now = now
    }

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var scopes: [Int: InputScope] = [:]
        for (index, input) in inputs.enumerated() {
            scopes[index] = InputScope(input.subject, isEdit: input.isEdit)
        }
        var dispositions = [Disposition<Never>](repeating: .finished, count: inputs.count)
        if scopes.isEmpty { return dispositions }
        let statements = SharingStatements(environment: environment, limits: limits)
        var loader = SharingLoader(scopes, statements, directory)
        let state = try loader.load(on: &connection)
        directory = loader.directory
        var plan = SharingPlan(state, statements, batch, now: now())
        // Inputs with few links come first. One with many links is retried if its links are already processed.
        for (index, scope) in scopes.sorted(by: { ($0.value.breadth, $0.key) < ($1.value.breadth, $1.key) }) {
            guard let subject = state.subject(of: scope, index) else { continue }
            let outcome: SharingPlan.Outcome
            if case .end(let share) = scope, let owner = state.owners[share] {
                outcome = try plan.end(share, of: owner, index)
            } else {
                outcome = try plan.reconcile(index, subject: subject)
            }
            dispositions[index] = disposition(of: outcome, scope)
        }
        batch = plan.finish()
        return dispositions
    }

    private func disposition(of outcome: SharingPlan.Outcome, _ scope: InputScope) -> Disposition<Never> {
        if outcome.isIncomplete { return .reprocess }
        // The links of an item are deferred under their own keys.
        guard case .link = scope, let rejection = outcome.rejection else { return .finished }
        return .deferred(reason: rejection.text(limits), after: retryWait, cause: .planned)
    }
}

extension InputScope {
    /// A rough order by the number of links.
    fileprivate var breadth: Int {
        switch self {
        case .link, .removal: 1
        case .item: 2
        case .end: 3
        }
    }
}

extension SharingState {
    /// Returns the object of an input; `nil` if it concerns no person's items.
    fileprivate func subject(of scope: InputScope, _ input: Int) -> ObjectKey? {
        switch scope {
        case .item(let realm, let item):
            itemRealms[realm].map { ObjectKey(realm: $0, kind: item.kind, id: item.id) }
        case .link: inputs[input]?.first
        case .removal(let share, let item):
            shareRealms[share].map { ObjectKey(realm: $0, kind: item.kind, id: item.id) }
        case .end(let share): shareKey(share)
        }
    }
}
