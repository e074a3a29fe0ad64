import Foundation
import Model
import Testing

/// The first model's examples ("Reporting structures" and "Reporting template"), its `...` left out.
struct Seed: Decodable {
    let trees: [ReportingTree]
    let contexts: [ReportingTree.Context]
    let template: ReportingTemplate

    static let templateID = UUID()

    static func load() throws -> Seed { try JSONDecoder().decode(Seed.self, from: try golden("Seed")) }

    var objects: ReportingObjects {
        ReportingObjects(
            templates: [Seed.templateID: template],
            contexts: Dictionary(uniqueKeysWithValues: contexts.map { ($0.object.id, $0.object.fields) }),
            nodes: Dictionary(uniqueKeysWithValues: trees.flatMap { $0.flatten() }.map { ($0.id, $0.fields) }))
    }

    /// The examples as they were meant: the Kind context points at the Kind tree.
    static func repaired() throws -> ReportingObjects {
        var objects = try load().objects
        let (kind, root) = (
            try id("Kind", in: objects), try #require(UUID(uuidString: "de808bee-75f2-4ad1-b656-ac9b3bfec741"))
        )
        objects.contexts[kind]?.sections[0].rootNode = root
        return objects
    }

    static func id(_ context: String, in objects: ReportingObjects) throws -> UUID {
        try #require(objects.contexts.first { $0.value.name == context }?.key)
    }

    static func node(_ reference: String, in objects: ReportingObjects) throws -> UUID {
        try #require(objects.nodes.first { $0.value.referenceId == reference }?.key)
    }
}

@Suite struct ReportingTreeTests {
    @Test func nestedTreesBecomeNodesThatNameTheirParents() throws {
        let seed = try Seed.load()
        let objects = seed.objects
        #expect(objects.nodes.count == 14)
        #expect(objects.contexts.values.map(\.name).sorted() == ["Activity", "Customer", "Kind", "Phase", "Project"])
        let project = try #require(objects.nodes[try Seed.node("ABC123", in: objects)])
        let parent = try #require(project.parent)
        #expect(objects.nodes[parent]?.name == "project-root")
        #expect(objects.nodes[parent]?.referenceId == nil)
        #expect(project.hasDependencies)
        #expect(project.dependencies == [try Seed.node("12345", in: objects)])
        #expect(objects.contexts[try Seed.id("Customer", in: objects)]?.sections.first?.showCount == 5)
    }

    @Test func parentsComeBeforeTheirChildren() throws {
        for tree in try Seed.load().trees {
            var seen: Set<UUID> = []
            for node in tree.flatten() {
                #expect(node.fields.parent.map(seen.contains) ?? true)
                seen.insert(node.id)
            }
        }
    }

    /// The document's own slip: the Kind context points at a root that none of its trees has.
    @Test func theSeedsDanglingReferenceIsReported() throws {
        let dangling = try Seed.load().objects.danglingReferences
        #expect(dangling.count == 1)
        #expect(dangling.first?.contains("context 'Kind'") == true)
        #expect(dangling.first?.contains("6f45167b-ae9f-467a-b2b6-5dcf674a900b") == true)
        #expect(try Seed.repaired().danglingReferences.isEmpty)
    }

    @Test func everySortOfDanglingReferenceIsReported() {
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
