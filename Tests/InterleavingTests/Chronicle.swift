import Essentials
import FoundationEssentials

/// What happened to each entry, for the one that ends wrong.
final class Chronicle {
    private var lines: [UUID: [String]] = [:]

    static let linesMax = 60
    static let lengthMax = 500

    /// What only comes again is told once.
    func note(_ entry: UUID, _ line: () -> String) {
        let line = String(line().prefix(Self.lengthMax))
        func withoutTick(_ line: String) -> Substring { line.drop { $0 != ":" } }
        if let last = lines[entry]?.last, withoutTick(last) == withoutTick(line) { return }
        lines[entry, default: []].append(line)
    }

    func story(of entry: UUID) -> String { (lines[entry] ?? []).suffix(Self.linesMax).joined(separator: "\n    ") }
}
