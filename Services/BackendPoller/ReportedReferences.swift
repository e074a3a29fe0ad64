import BackendProtocol
import Catalogues
import FoundationEssentials
import Logging
import Metrics
import Model

/// References of the back end's own data that lead nowhere: each is logged once, and all are counted.
struct ReportedReferences {
    /// References remembered; then they are forgotten, and logged again.
    static let countMax = 1_000

    private var known: Set<String> = []
    private var counters: [EnvironmentID: Counter] = [:]
    /// Those that were looked through last; mostly the next person's are the same.
    private var nodes: (tree: UUID, byID: [UUID: ReportingTreeNode])?

    /// - Returns: Whether there are any.
    mutating func report(
        _ data: ReportingData, _ tree: NodeTree, of person: String, in environment: EnvironmentID, _ logger: Logger
    ) -> Bool {
        func byID<Fields>(_ objects: [Identified<Fields>]) -> [UUID: Fields] {
            Dictionary(objects.map { ($0.id, $0.fields) }) { first, _ in first }
        }
        let nodes = nodes.flatMap { $0.tree == tree.digest ? $0.byID : nil } ?? byID(data.nodes)
        self.nodes = (tree.digest, nodes)
        let objects = ReportingObjects(
            templates: byID(data.templates), contexts: byID(data.contexts), nodes: nodes)
        let dangling = objects.danglingReferences
        if dangling.isEmpty { return false }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.poll.dangling_references", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: dangling.count)
        if known.count > Self.countMax { known = [] }
        for reference in dangling where known.insert("\(environment) \(reference)").inserted {
            logger.warning(
                "the back end's data refers to what it does not have",
                metadata: ["environment": "\(environment)", "person": "\(person)", "reference": "\(reference)"])
        }
        return true
    }
}
