import Foundation
import Model
import TestSupport
import Testing

@Suite struct ReportingTreeTests {
    @Test func nestedTreesFlattenToNodesWithParents() throws {
        let seed = try FirstModel.load()
        let objects = seed.objects
        #expect(objects.nodes.count == 14)
        #expect(objects.contexts.values.map(\.name).sorted() == ["Activity", "Customer", "Kind", "Phase", "Project"])
        let project = try #require(objects.nodes[try FirstModel.node("ABC123", in: objects)])
        let parent = try #require(project.parent)
        #expect(objects.nodes[parent]?.name == "project-root")
        #expect(objects.nodes[parent]?.referenceId == nil)
        #expect(project.hasDependencies)
        #expect(project.dependencies == [try FirstModel.node("12345", in: objects)])
        #expect(objects.contexts[try FirstModel.id("Customer", in: objects)]?.sections.first?.showCount == 5)
    }

    @Test func parentsComeBeforeTheirChildren() throws {
        for tree in try FirstModel.load().trees {
            var seen: Set<UUID> = []
            for node in tree.flatten() {
                #expect(node.fields.parent.map(seen.contains) ?? true)
                seen.insert(node.id)
            }
        }
    }

    /// An error of the first model's document: the Kind context refers to a root that none of its trees has.
    @Test func danglingReferenceOfFirstModelIsReported() throws {
        let dangling = try FirstModel.load().objects.danglingReferences
        #expect(dangling.count == 1)
        #expect(dangling.first?.contains("context 'Kind'") == true)
        #expect(dangling.first?.contains("6f45167b-ae9f-467a-b2b6-5dcf674a900b") == true)
        #expect(try FirstModel.repaired().danglingReferences.isEmpty)
    }

    @Test func everyKindOfDanglingReferenceIsReported() {
        let objects = ReportingObjects(
            templates: [UUID(): ReportingTemplate(name: "T", type: "t", reportingContexts: [UUID()])],
            contexts: [
                UUID(): ReportingContext(
                    name: "C", required: true, sections: [.init(name: "S", items: [UUID()])], preselected: [UUID()])
            ],
            nodes: [UUID(): ReportingTreeNode(name: "N", parent: UUID(), dependencies: [UUID()])])
        #expect(objects.danglingReferences.count == 5)
    }
}
