import BackendProtocol
import Compass
import Synchronization

@testable import DefectSubmitter

/// Injects faults between a worker and the tracker, call by call.
final class FaultGate: Sendable {
    enum Fault: CaseIterable {
        /// The call is lost.
        case lostBefore
        /// The call is made, and its response is lost.
        case lostAfter
        /// The tracker reports that it did nothing.
        case unavailable
    }

    private struct State {
        var count = 0
        var crashAfter: Int?
        var hasCrashed = false
        var faults: [Int: Fault] = [:]
        /// New records whose ids were not received.
        var unreportedRecords = 0
    }

    private let state = Mutex(State())

    /// Number of calls.
    var count: Int { state.withLock { $0.count } }
    /// Whether the process has crashed: it makes no calls and receives no responses.
    var hasCrashed: Bool { state.withLock { $0.hasCrashed } }
    var unreportedRecords: Int { state.withLock { $0.unreportedRecords } }

    /// Crashes the process before it receives the response to the last of these calls.
    func crash(after calls: Int) { state.withLock { $0.crashAfter = $0.count + calls } }

    func fail(_ call: Int, _ fault: Fault) { state.withLock { $0.faults[$0.count + call] = fault } }

    func reset() {
        state.withLock { state in
            (state.crashAfter, state.hasCrashed, state.faults) = (nil, false, [:])
        }
    }

    func pass<Success>(
        beginsRecord: Bool = false, _ call: () async throws(BackendError) -> Success
    ) async throws(BackendError) -> Success {
        let fault = try enter()
        switch fault {
        case .lostBefore: throw .outcomeUnknown(reason: "lost before")
        case .unavailable: throw .notProcessed(reason: "unavailable", retryAfter: nil)
        case .lostAfter, nil: break
        }
        let result: Success
        do throws(BackendError) {
            result = try await call()
        } catch {
            if crashesNow() { throw .deadlineExceeded }
            throw error
        }
        let crashes = crashesNow()
        if beginsRecord, crashes || fault == .lostAfter { state.withLock { $0.unreportedRecords += 1 } }
        if crashes { throw .deadlineExceeded }
        if fault == .lostAfter { throw .outcomeUnknown(reason: "lost after") }
        return result
    }

    private func enter() throws(BackendError) -> Fault? {
        let (hasCrashed, fault) = state.withLock { state -> (Bool, Fault?) in
            if state.count == state.crashAfter { state.hasCrashed = true }
            if state.hasCrashed { return (true, nil) }
            state.count += 1
            return (false, state.faults[state.count])
        }
        if hasCrashed { throw .deadlineExceeded }
        return fault
    }

    private func crashesNow() -> Bool {
        state.withLock { state in
            if state.count == state.crashAfter { state.hasCrashed = true }
            return state.hasCrashed
        }
    }
}

/// A tracker behind a fault gate.
struct GatedTracker: RecordEditing {
    let tracker: any RecordEditing
    let gate: FaultGate

    func logIn() async throws(BackendError) {
        try await gate.pass { () async throws(BackendError) in try await tracker.logIn() }
    }

    func record(_ id: String) async throws(BackendError) -> Record? {
        try await gate.pass { () async throws(BackendError) in try await tracker.record(id) }
    }

    func recordType() async throws(BackendError) -> RecordType {
        try await gate.pass { () async throws(BackendError) in try await tracker.recordType() }
    }

    func folders(in id: String?) async throws(BackendError) -> [Folder]? {
        try await gate.pass { () async throws(BackendError) in try await tracker.folders(in: id) }
    }

    func page(_ number: Int, ofQuery id: String) async throws(BackendError) -> QueryPage? {
        try await gate.pass { () async throws(BackendError) in try await tracker.page(number, ofQuery: id) }
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
