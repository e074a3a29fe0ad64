import Essentials
import Foundation
import ServiceRuntime
import Synchronization
import Telemetry

/// Displays the demo's steps: a progress bar on a terminal, otherwise a line every few seconds.
final class DemoConsole: Sendable {
    /// The progress of a step.
    struct Progress: Sendable {
        var done: Int
        var total: Int
        var note = ""
    }

    private let isTerminal = isatty(STDOUT_FILENO) == 1
    private let finished = Mutex<[ScenarioReport.Step]>([])

    private static let barWidth = 24
    private static let nameWidth = 24

    var steps: [ScenarioReport.Step] { finished.withLock { $0 } }

    func log(_ line: String) { write(line + "\n") }

    /// Displays `progress` while `body` runs, and records the duration.
    func step<Success: Sendable>(
        _ name: String, progress: @escaping @Sendable () -> Progress, _ body: () async throws -> Success
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

    private func show(_ name: String, _ progress: Progress, elapsed: Duration, isLast: Bool) {
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

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
}
