import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Keeps the copies of what people share, and the shares between them.
///
/// It recomputes from PostgreSQL which copies there should be of the links that an event concerns, and writes the
/// difference. So a repeat, a late event and a race end the same.
struct ShareHandler: Handler {
    static var schemaOldest: Int32 { 20 }

    let bounds: ShareBounds
    /// After how long a link is decided again that found a bound reached.
    let retryWait: Duration
    private var directory = RealmDirectory()

    init(_ bounds: ShareBounds = ShareBounds(), retryWait: Duration = .seconds(300)) {
        self.bounds = bounds
        self.retryWait = retryWait
    }

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var concerns: [Int: Concern] = [:]
        for (index, input) in inputs.enumerated() {
            concerns[index] = Concern(input.subject, isEdit: input.isEdit)
        }
        var nexts = [Disposition<Never>](repeating: .finished, count: inputs.count)
        if concerns.isEmpty { return nexts }
        let statements = SharingStatements(environment: environment, bounds: bounds)
        var loader = SharingLoader(concerns, statements, directory)
        let state = try loader.load(on: &connection)
        directory = loader.directory
        var plan = SharingPlan(state, statements, batch)
        // An input about many links comes again where those about one have decided some of them.
        for (index, concern) in concerns.sorted(by: { ($0.value.breadth, $0.key) < ($1.value.breadth, $1.key) }) {
            guard let subject = state.subject(of: concern, index) else { continue }
            let outcome: SharingPlan.Outcome
            if case .end(let share) = concern, let owner = state.owners[share] {
                outcome = try plan.end(share, of: owner, index)
            } else {
                outcome = try plan.settle(index, subject: subject)
            }
            nexts[index] = next(outcome, concern)
        }
        batch = plan.finish()
        return nexts
    }

    private func next(_ outcome: SharingPlan.Outcome, _ concern: Concern) -> Disposition<Never> {
        if outcome.comesAgain { return .again }
        // The links of an item wait under keys of their own.
        guard case .link = concern, let refusal = outcome.waitsFor else { return .finished }
        return .park(reason: refusal.text(bounds), after: retryWait, cause: .planned)
    }
}

extension Concern {
    /// How many links it may be about, roughly.
    fileprivate var breadth: Int {
        switch self {
        case .link, .removal: 1
        case .item: 2
        case .end: 3
        }
    }
}

extension SharingState {
    /// The object that an input is about; `nil` when nobody's items are concerned.
    fileprivate func subject(of concern: Concern, _ input: Int) -> ObjectKey? {
        switch concern {
        case .item(let realm, let item):
            itemRealms[realm].map { ObjectKey(realm: $0, kind: item.kind, id: item.id) }
        case .link: inputs[input]?.first
        case .removal(let share, let item):
            shareRealms[share].map { ObjectKey(realm: $0, kind: item.kind, id: item.id) }
        case .end(let share): shareKey(share)
        }
    }
}
