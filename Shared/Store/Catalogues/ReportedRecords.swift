package import BackendProtocol
import Essentials
package import Logging
import Metrics
package import Model

/// Records of a back end that cannot be read: each is logged once, and all are counted whenever they are read.
package struct ReportedRecords {
    /// Records remembered of an environment; then they are forgotten, and logged again.
    private static let countMax = 1_000

    private var known: [EnvironmentID: Set<UnreadableRecord>] = [:]
    private var counters: [EnvironmentID: Counter] = [:]

    package init() {}

    /// - Parameter person: The e-mail address of the person whose lists they are in; `nil`: of several people's.
    package mutating func report(
        _ records: [UnreadableRecord], of person: String? = nil, in environment: EnvironmentID, _ logger: Logger
    ) {
        if records.isEmpty { return }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.backend.unreadable_records", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: records.count)
        if known[environment, default: []].count > Self.countMax { known[environment] = [] }
        for record in records where known[environment, default: []].insert(record).inserted {
            var metadata: Logger.Metadata = ["environment": "\(environment)", "record": "\(record)"]
            if let person { metadata["person"] = "\(person)" }
            logger.warning("a record of the back end cannot be read; the others are", metadata: metadata)
        }
    }
}
