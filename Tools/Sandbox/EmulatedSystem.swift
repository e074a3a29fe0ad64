import Synchronization

/// The state of an emulated back end, accessed under the lock of its ``EmulatedSystem``.
protocol EmulatorState: Sendable {
    associatedtype Own: EmulatorSwitches
    /// A line of the journal.
    associatedtype Line: Codable
    /// People, projects and related data.
    associatedtype Organisation: Decodable

    init()

    var injector: FaultInjector<Own> { get set }
    var journal: Journal<Line>? { get set }
    var recordCount: Int { get }

    /// Applies a change, which may be one of the journal.
    mutating func apply(_ line: Line)

    /// Adds master data; items with an existing number replace it.
    mutating func load(_ organisation: Organisation)
}

extension EmulatorState {
    var switches: Switches<Own> {
        get { injector.switches }
        set { injector.switches = newValue }
    }

    /// Applies a change, and journals it.
    mutating func write(_ line: Line) {
        journal?.append(line)
        apply(line)
    }
}

/// An emulated back end: its state, and a lock.
final class EmulatedSystem<State: EmulatorState>: Sendable {
    private let state: Mutex<State>

    /// - Parameter journalPath: The file that keeps changes over a restart; `nil` keeps them in memory only.
    init(journalPath: String?) throws {
        var state = State()
        if let journalPath {
            let journal = try Journal<State.Line>(path: journalPath) { state.apply($0) }
            state.journal = journal
        }
        self.state = Mutex(state)
    }

    func withState<Value: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try state.withLock { state throws(Failure) in try body(&state) }
    }

    var switches: Switches<State.Own> { withState { $0.switches } }

    var recordCount: Int { withState { $0.recordCount } }

    func count(_ kind: String, _ count: Int = 1) { withState { $0.injector.count(kind, count) } }

    func load(_ organisation: State.Organisation) { withState { $0.load(organisation) } }
}
