import BackendProtocol
import Catalogues
import FoundationEssentials
import Logging
import Metrics
import Model

/// Reports dangling references in a back end's data: each is logged once, and all are counted.
struct DanglingReferenceReporter {
    /// Maximum number of logged references that are stored; beyond it they are cleared and logged again.
    static let countMax = 1_000

    private var logged: Set<String> = []
    private var counters: [EnvironmentID: Counter] = [:]
    /// The nodes of the last report, which are usually equal for the next person.
    private var nodes: (tree: UUID, byID: [UUID: ReportingTreeNode])?

    /// - Returns: Whether there are dangling references.
    mutating func report(
        _ data: ReportingData, _ tree: NodeTree, of person: String, in environment: EnvironmentID, _ logger: Logger
    ) -> Bool {
        func byID<Fields>(_ objects: [Identified<Fields>]) -> [UUID: Fields] {
            Dictionary(objects.map { ($0.id, $0.fields) }) { first, _ in first }
        }
        let nodes = nodes.flatMap { $0.tree == tree.digest ? $0.byID : nil } ?? byID(data.nodes)
        self.nodes = (tree.digest, nodes)
        let objects = ReportingObjects(templates: byID(data.templates), contexts: byID(data.contexts), nodes: nodes)
        let dangling = objects.danglingReferences
        if dangling.isEmpty { return false }
        let counter =
            counters[environment]
            ?? Counter(label: "fieldpost.poll.dangling_references", dimensions: [("environment", "\(environment)")])
        counters[environment] = counter
        counter.increment(by: dangling.count)
        if logged.count > Self.countMax { logged = [] }
        for reference in dangling where logged.insert("\(environment) \(reference)").inserted {
            logger.warning(
                "dangling reference in back-end data",
                metadata: ["environment": "\(environment)", "person": "\(person)", "reference": "\(reference)"])
        }
        return true
    }
}
