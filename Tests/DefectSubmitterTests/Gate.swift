import BackendProtocol
import Compass
import Synchronization

@testable import DefectSubmitter

/// What goes wrong between a worker and the tracker, call by call.
final class Gate: Sendable {
    enum Fault: CaseIterable {
        /// The call is not made; nobody knows that.
        case lostBefore
        /// It is made, and its answer is lost.
        case lostAfter
        /// The tracker says that it did nothing.
        case away
    }

    private struct State {
        var count = 0
        var dyingAfter: Int?
        var isDead = false
        var faults: [Int: Fault] = [:]
        /// New records whose ids nobody has heard.
        var unheard = 0
    }

    private let state = Mutex(State())

    /// Calls so far.
    var count: Int { state.withLock { $0.count } }
    /// The process is dead: it makes no call any more, and hears no answer.
    var isDead: Bool { state.withLock { $0.isDead } }
    var unheard: Int { state.withLock { $0.unheard } }

    /// - Parameter calls: The process makes so many, and dies before it hears the answer to the last one.
    func die(after calls: Int) { state.withLock { $0.dyingAfter = $0.count + calls } }

    func fail(_ call: Int, _ fault: Fault) { state.withLock { $0.faults[$0.count + call] = fault } }

    func reset() {
        state.withLock { state in
            (state.dyingAfter, state.isDead, state.faults) = (nil, false, [:])
        }
    }

    func pass<Success>(
        beginsRecord: Bool = false, _ call: () async throws(BackendError) -> Success
    ) async throws(BackendError) -> Success {
        let fault = try enter()
        switch fault {
        case .lostBefore: throw .outcomeUnknown(reason: "lost before")
        case .away: throw .notProcessed(reason: "away", retryAfter: nil)
        case .lostAfter, nil: break
        }
        let answer: Success
        do throws(BackendError) {
            answer = try await call()
        } catch {
            if diesNow() { throw .tooLate }
            throw error
        }
        let isDying = diesNow()
        if beginsRecord, isDying || fault == .lostAfter { state.withLock { $0.unheard += 1 } }
        if isDying { throw .tooLate }
        if fault == .lostAfter { throw .outcomeUnknown(reason: "lost after") }
        return answer
    }

    private func enter() throws(BackendError) -> Fault? {
        let (isDead, fault) = state.withLock { state -> (Bool, Fault?) in
            if state.count == state.dyingAfter { state.isDead = true }
            if state.isDead { return (true, nil) }
            state.count += 1
            return (false, state.faults[state.count])
        }
        if isDead { throw .tooLate }
        return fault
    }

    private func diesNow() -> Bool {
        state.withLock { state in
            if state.count == state.dyingAfter { state.isDead = true }
            return state.isDead
        }
    }
}

/// A tracker behind a gate.
struct GatedTracker: RecordEditing {
    let tracker: any RecordEditing
    let gate: Gate

    func logIn() async throws(BackendError) {
        try await gate.pass { () async throws(BackendError) in try await tracker.logIn() }
    }

    func record(_ id: String) async throws(BackendError) -> Record? {
        try await gate.pass { () async throws(BackendError) in try await tracker.record(id) }
    }

    func recordType() async throws(BackendError) -> RecordType {
        try await gate.pass { () async throws(BackendError) in try await tracker.recordType() }
    }

    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await gate.pass(beginsRecord: true) { () async throws(BackendError) in
            try await tracker.openNew(before: deadline)
        }
    }

    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await gate.pass { () async throws(BackendError) in
            try await tracker.open(id, action: action, values, before: deadline)
        }
    }

    func field(_ name: String, of id: String) async throws(BackendError) -> Field? {
        try await gate.pass { () async throws(BackendError) in try await tracker.field(name, of: id) }
    }

    func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await gate.pass { () async throws(BackendError) in try await tracker.commit(id, values, before: deadline) }
    }

    func revert(_ id: String) async throws(BackendError) {
        try await gate.pass { () async throws(BackendError) in try await tracker.revert(id) }
    }

    func delete(_ id: String, action: String, before deadline: WriteDeadline) async throws(BackendError) {
        try await gate.pass { () async throws(BackendError) in
            try await tracker.delete(id, action: action, before: deadline)
        }
    }
}
