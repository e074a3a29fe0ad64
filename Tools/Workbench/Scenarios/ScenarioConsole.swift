import Essentials
import Foundation
import Synchronization

/// Displays a scenario's steps: a progress bar on a terminal, otherwise a line every few seconds.
final class ScenarioConsole: Sendable {
    /// The progress of a step, which its tasks update.
    final class Progress: Sendable {
        struct State: Sendable {
            var done = 0
            let total: Int
            var note = ""
        }

        private let state: Mutex<State>

        init(total: Int) { state = Mutex(State(total: total)) }

        var now: State { state.withLock { $0 } }

        func add() { state.withLock { $0.done += 1 } }
        func set(_ done: Int) { state.withLock { $0.done = done } }
        func note(_ text: String) { state.withLock { $0.note = text } }
    }

    /// If given, lines have the seconds since then.
    private let start: ContinuousClock.Instant?
    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private let finished = Mutex<[ScenarioReport.Step]>([])

    private static let barWidth = 24
    private static let nameWidth = 24

    /// - Parameter secondsBefore: If given, lines have the seconds since the start, which was earlier by this number.
    init(secondsBefore: Int? = nil) { start = secondsBefore.map { ContinuousClock.now - .seconds($0) } }

    var steps: [ScenarioReport.Step] { finished.withLock { $0 } }

    func log(_ line: String) {
        let time = start.map { String(format: "[%4llds] ", (ContinuousClock.now - $0).components.seconds) } ?? ""
        write(time + line + "\n")
    }

    /// Displays `progress` while `body` runs, and records the duration.
    func step<Success: Sendable>(
        _ name: String, progress: @escaping @Sendable () -> Progress.State, _ body: () async throws -> Success
    ) async throws -> Success {
        let start = ContinuousClock.now
        let display = Task { [self] in
            while true {
                try await Task.sleep(for: isTerminal ? .milliseconds(200) : .seconds(3))
                show(name, progress(), elapsed: ContinuousClock.now - start, isLast: false)
            }
        }
        defer { display.cancel() }
        let success = try await body()
        display.cancel()
        let elapsed = ContinuousClock.now - start
        finished.withLock { $0.append(.init(name: name, values: ["seconds": elapsed.inSeconds])) }
        show(name, progress(), elapsed: elapsed, isLast: true)
        return success
    }

    /// Displays the progress that `body` updates.
    func step<Success: Sendable>(
        _ name: String, total: Int = 1, _ body: (Progress) async throws -> Success
    ) async throws -> Success {
        let progress = Progress(total: total)
        return try await step(name, progress: { progress.now }) { try await body(progress) }
    }

    private func show(_ name: String, _ progress: Progress.State, elapsed: Duration, isLast: Bool) {
        let share = progress.total > 0 ? min(1, Double(progress.done) / Double(progress.total)) : 1
        let filled = Int(share * Double(Self.barWidth))
        let bar = String(repeating: "█", count: filled) + String(repeating: "·", count: Self.barWidth - filled)
        let title = name.padding(toLength: Self.nameWidth, withPad: " ", startingAt: 0)
        let counts = "\(progress.done)/\(progress.total)"
        let time = String(format: "%6.1f s", elapsed.inSeconds)
        let line = "\(title) \(bar) \(time)  \(counts)\(progress.note.isEmpty ? "" : "  ")\(progress.note)"
        // On a terminal the line is written over until the step ends: back to its start, and the rest cleared.
        write(isTerminal ? "\r\u{1B}[K\(line)\(isLast ? "\n" : "")" : line + "\n")
    }

    /// Writes a text without changes.
    func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }
}
