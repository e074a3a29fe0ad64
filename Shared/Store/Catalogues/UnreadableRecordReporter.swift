package import BackendProtocol
package import Logging
import Metrics
package import Model

/// Reports unreadable records of a back end: each is logged once, and all are counted on each read.
package struct UnreadableRecordReporter {
    /// Maximum number of logged records per environment that are stored; beyond it they are cleared and logged again.
    private static let countMax = 1_000

    private var logged: [EnvironmentID: Set<UnreadableRecord>] = [:]
    private var counters: [EnvironmentID: Counter] = [:]

    package init() {}

    /// - Parameter person: The e-mail address of the owner of the lists; `nil` for lists of several people.
    package mutating func report(
        _ records: [UnreadableRecord], of person: String? = nil, in environment: EnvironmentID, _ logger: Logger
    ) {
        if records.isEmpty { return }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.backend.unreadable_records", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: records.count)
        if logged[environment, default: []].count > Self.countMax { logged[environment] = [] }
        for record in records where logged[environment, default: []].insert(record).inserted {
            var metadata: Logger.Metadata = ["environment": "\(environment)", "record": "\(record)"]
            if let person { metadata["person"] = "\(person)" }
            logger.warning("unreadable record of the back end skipped", metadata: metadata)
        }
    }
}
