import Essentials
import FoundationEssentials

/// A log per entry, printed if its check fails.
final class EntryTimeline {
    private var lines: [UUID: [String]] = [:]

    static let linesMax = 60
    static let lengthMax = 500

    /// Repeated lines are recorded once.
    func record(_ entry: UUID, _ line: () -> String) {
        let line = String(line().prefix(Self.lengthMax))
        func withoutTick(_ line: String) -> Substring { line.drop { $0 != ":" } }
        if let last = lines[entry]?.last, withoutTick(last) == withoutTick(line) { return }
        lines[entry, default: []].append(line)
    }

    func text(of entry: UUID) -> String { (lines[entry] ?? []).suffix(Self.linesMax).joined(separator: "\n    ") }
}
