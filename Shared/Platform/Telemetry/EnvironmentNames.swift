import Dispatch
import Synchronization

/// The names of environments by number, which log lines add to the number.
///
/// Logging never waits for a database: a line with an unknown number has no name, and requests that the names are
/// loaded for later lines.
package final class EnvironmentNames: Sendable {
    /// The names of this process's log lines.
    package static let process = EnvironmentNames()

    private struct State {
        var names: [Int32: String] = [:]
        /// Unknown numbers of log lines, and those that the last load did not find.
        var requested: Set<Int32> = []
        var absent: Set<Int32> = []
        var isLoaded = false
    }

    /// Maximum number of unknown numbers.
    private static let unknownMax = 1_000

    private let state = Mutex(State())
    /// Signalled by the first line with an unknown number since the last load.
    private let requested = DispatchSemaphore(value: 0)

    package init() {}

    /// Whether the names must be loaded: initially, and after lines with unknown numbers.
    package var isIncomplete: Bool { state.withLock { !$0.isLoaded || !$0.requested.isEmpty } }

    /// Blocks the thread until ``isIncomplete``.
    package func waitUntilIncomplete() {
        while !isIncomplete { requested.wait() }
    }

    /// Replaces the names by newly loaded ones.
    package func replace(with names: [Int32: String]) {
        state.withLock { state in
            if state.absent.count > Self.unknownMax { state.absent = [] }
            state.absent.formUnion(state.requested.filter { names[$0] == nil })
            (state.names, state.requested, state.isLoaded) = (names, [], true)
        }
    }

    /// Returns the name of the environment with this number; `nil` if the text is no number, or an unknown one.
    func name(of text: String) -> String? {
        guard let number = Int32(text) else { return nil }
        let (name, isFirst): (String?, Bool) = state.withLock { state in
            if let name = state.names[number] { return (name, false) }
            let isNew = !state.absent.contains(number) && state.requested.count < Self.unknownMax
            defer { if isNew { state.requested.insert(number) } }
            return (nil, isNew && state.requested.isEmpty)
        }
        if isFirst { requested.signal() }
        return name
    }
}
