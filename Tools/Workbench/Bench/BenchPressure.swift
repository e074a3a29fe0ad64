import Foundation

/// How long some process of the machine waited for a processor or for the disk, whose ever it was: a round in which
/// others work too measures them along.
struct BenchPressure {
    /// Since the machine started (`total` of the line `some`; Linux, `Documentation/accounting/psi.rst`); `nil` where
    /// the kernel does not count it.
    private let processor: Duration?
    private let disk: Duration?
    private let time = ContinuousClock.now

    static func now() -> BenchPressure { BenchPressure(processor: waited(for: "cpu"), disk: waited(for: "io")) }

    private static func waited(for resource: String) -> Duration? {
        guard let text = try? String(contentsOfFile: "/proc/pressure/\(resource)", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("some ") }),
            let total = line.split(separator: "=").last.flatMap({ Int64($0) })
        else { return nil }
        return .microseconds(total)
    }

    /// Adds what part of the time since then somebody waited.
    func add(to figures: inout BenchFigures) {
        let after = BenchPressure.now()
        for (name, before, after) in [
            ("somebody waited for a processor", processor, after.processor),
            ("somebody waited for the disk", disk, after.disk),
        ] {
            guard let before, let after else { continue }
            figures.add(name, "% of the time", (after - before) / (ContinuousClock.now - time) * 100)
        }
    }
}
