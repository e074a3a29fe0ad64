import Logging
import Metrics
import Model

/// Rows of a tracker that cannot be understood: each is logged once, and all are counted whenever they are read.
struct ReportedRows {
    /// Rows remembered; then they are forgotten, and logged again.
    private static let countMax = 1_000

    private var known: [EnvironmentID: Set<UnreadableRow>] = [:]
    private var counters: [EnvironmentID: Counter] = [:]

    mutating func report(_ rows: [UnreadableRow], in environment: EnvironmentID, _ logger: Logger) {
        if rows.isEmpty { return }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.defects.unreadable_rows", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: rows.count)
        if known[environment, default: []].count > Self.countMax { known[environment] = [] }
        for row in rows where known[environment, default: []].insert(row).inserted {
            logger.warning(
                "a row of the tracker cannot be read; the others are",
                metadata: ["environment": "\(environment)", "row": "\(row)"])
        }
    }
}
