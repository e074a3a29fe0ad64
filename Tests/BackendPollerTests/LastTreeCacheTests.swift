import BackendProtocol
import Catalogues
import FoundationEssentials
import Logging
import Model
import TestSupport
import Testing

@testable import BackendPoller

/// A cached tree is used for equal nodes only.
@Suite(.ownThreads) struct LastTreeCacheTests {
    private static func data(_ names: [String]) -> ReportingData {
        PollHandlerTests.data(names, below: "Project")
    }

    @Test func cachedTreeMatchesItsNodes() {
        let last = LastTreeCache()
        for names in [["P1"], ["P1"], ["P1", "P2"], ["P2", "P1"], [], ["P1"]] {
            let nodes = Self.data(names).nodes
            #expect(last.tree(of: nodes) == NodeTree(nodes))
        }
        var renamed = Self.data(["P1"]).nodes
        renamed[1].fields.title = "Roof"
        #expect(last.tree(of: renamed) == NodeTree(renamed))
    }

    @Test func referencesAreResolvedInTheirOwnTree() throws {
        var reported = DanglingReferenceReporter()
        let whole = Self.data(["P1"])
        var broken = whole
        broken.nodes.removeFirst()
        let logger = Logger(label: "poller") { _ in SwiftLogNoOpLogHandler() }
        let environment = EnvironmentID(rawValue: 1)
        for (data, isDangling) in [(whole, false), (broken, true), (broken, true), (whole, false)] {
            #expect(
                reported.report(data, NodeTree(data.nodes), of: "ana", in: environment, logger) == isDangling)
        }
    }
}
