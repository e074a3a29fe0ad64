public import FoundationEssentials

/// A tree in the first model's nested form, in which nodes contain their children; convenient for integrations.
///
/// Fieldpost stores trees flat; ``flatten()`` converts them.
public struct ReportingTree: Decodable, Sendable {
    /// A reference to an object in the first model's form: `{"id": "…"}`.
    public struct Reference: Decodable, Sendable {
        /// The object's id.
        public let id: UUID
    }

    /// A context in the first model's form, whose sections refer to nodes with `{"id": "…"}`.
    public struct Context: Decodable, Sendable {
        /// A section in the first model's form.
        public struct Section: Decodable, Sendable {
            let name: String
            let showCount: Int?
            let items: [Reference]?
            let rootNode: Reference?
        }

        let id: UUID
        let name: String
        let required: Bool?
        let sections: [Section]?
        let preselected: [Reference]?
        let visible: Bool?
        let readOnly: Bool?

        /// The context as an object.
        public var object: Identified<ReportingContext> {
            let sections = (sections ?? []).map {
                ReportingContext.Section(
                    name: $0.name, showCount: $0.showCount, items: $0.items?.map(\.id), rootNode: $0.rootNode?.id)
            }
            let fields = ReportingContext(
                name: name, required: required ?? false, sections: sections,
                preselected: (preselected ?? []).map(\.id), visible: visible ?? true, readOnly: readOnly ?? false)
            return Identified(id: id, fields: fields)
        }
    }

    let id: UUID
    let referenceId: String?
    let name: String
    let title: String?
    let hasDependencies: Bool?
    let dependencies: [Reference]?
    let children: [ReportingTree]?

    /// Returns the tree's nodes as objects that name their parents, each parent before its children.
    public func flatten() -> [Identified<ReportingTreeNode>] { flatten(below: nil) }

    private func flatten(below parent: UUID?) -> [Identified<ReportingTreeNode>] {
        let node = ReportingTreeNode(
            referenceId: referenceId, name: name, title: title, parent: parent,
            hasDependencies: hasDependencies ?? false, dependencies: (dependencies ?? []).map(\.id))
        return [Identified(id: id, fields: node)] + (children ?? []).flatMap { $0.flatten(below: id) }
    }
}
