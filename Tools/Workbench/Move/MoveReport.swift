import CommandLineSupport
import Essentials

/// What came of a move. Times are in seconds.
struct MoveReport: Encodable, Sendable {
    /// A part of the move.
    struct Phase: Encodable, Sendable {
        let name: String
        let seconds: Double
        /// Rows that were carried in it.
        var rows: Int?
    }

    /// The rows of a table that were moved.
    struct Moved: Encodable, Sendable {
        let table: String
        let rows: Int
    }

    var phases: [Phase] = []
    var tables: [Moved] = []
    /// The most memory that the commands had, in MB.
    var exportMemory = 0.0
    var importMemory = 0.0
    /// How long the environment could not be written.
    var held = 0.0
    /// The longest time from a device's first try to an answer, of each device, while it was moved.
    var pauses: [Double] = []
    /// The same before, while nothing was moved.
    var pausesBefore: [Double] = []
    var entryCount = 0
    var acceptedCount = 0
    var rejectedCount = 0
    /// Answers of the old place that were asked for again at the new one.
    var askedAgainCount = 0
    /// Objects that nobody has written since.
    var sameCount = 0
    var realmCount = 0
    var differences: [String] = []

    var text: String {
        var table = Table(
            [("phase", .left), ("seconds", .right), ("rows", .right), ("rows/s", .right)], empty: "nothing was moved")
        for phase in phases {
            let speed = phase.rows.map { Double($0) / max(phase.seconds, 0.001) }
            table.add([
                phase.name, RehearsalReport.text(phase.seconds), phase.rows.map { "\($0)" } ?? "-",
                speed.map { "\(Int($0))" } ?? "-",
            ])
        }
        let rows = tables.filter { $0.rows > 0 }.map { "\($0.table) \($0.rows)" }.joined(separator: ", ")
        var lines = [
            table.text, "moved: \(rows)",
            "memory at most: export \(Int(exportMemory)) MB, import \(Int(importMemory)) MB",
            "held for \(RehearsalReport.text(held)) s",
            """
            longest pause of a device, from its first try to an answer: \(RehearsalReport.text(pauses.max() ?? 0)) s, \
            half of them at most \(RehearsalReport.text(Self.median(pauses))) s; before, while nothing was moved: \
            \(RehearsalReport.text(pausesBefore.max() ?? 0)) s
            """,
            """
            \(entryCount) entries; \(acceptedCount) mutations accepted, \(rejectedCount) refused, each once; \
            \(askedAgainCount) answers asked for again; \(sameCount) objects as they were moved; \(realmCount) realms \
            of devices compared
            """,
        ]
        lines += differences.prefix(Self.shownMax)
        lines.append("verdict: " + (differences.isEmpty ? "no differences" : "\(differences.count) differences"))
        return lines.joined(separator: "\n")
    }

    private static let shownMax = 50

    /// What was not carried while it was held was so before.
    mutating func countCopied() {
        guard phases.count > 1 else { return }
        phases[0].rows = tables.reduce(0) { $0 + $1.rows } - (phases[1].rows ?? 0)
    }

    static func median(_ values: [Double]) -> Double {
        values.isEmpty ? 0 : values.sorted()[values.count / 2]
    }
}
