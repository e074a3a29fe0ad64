public import FoundationEssentials
public import Model

/// The trees, contexts and templates that one person may report on.
public struct ReportingData: Equatable, Sendable {
    /// The nodes of all trees, each after its parent, roots included. People with the same permissions get the same
    /// nodes.
    public var nodes: [Identified<ReportingTreeNode>]
    /// The choices of each template, with the person's own suggestions.
    public var contexts: [Identified<ReportingContext>]
    /// The kinds of entry that the person may register.
    public var templates: [Identified<ReportingTemplate>]
    /// Rows of the back end's lists that could not be decoded, whose choices are therefore missing here.
    ///
    /// While there are such rows, the poller writes new and changed choices and deletes none.
    public var unreadable: [UnreadableRecord] = []

    /// Creates reporting data without unreadable rows.
    public init(
        nodes: [Identified<ReportingTreeNode>], contexts: [Identified<ReportingContext>],
        templates: [Identified<ReportingTemplate>]
    ) {
        self.nodes = nodes
        self.contexts = contexts
        self.templates = templates
    }

    /// The template and selections that a record's references resolve to.
    public struct Meaning: Equatable, Sendable {
        /// The template of the entry; `nil` if the references contradict every template.
        public var template: UUID?
        /// The selected nodes, in the order of the template's contexts.
        public var selections: [ReportingSelection]
    }

    /// Resolves a record's references to the best-matching template and its selections.
    ///
    /// - A match is better if, in this order: the template has a context for each reference and the references repeat
    ///   its fixed choices; the nodes exist; every required choice is made. Ties go to the template with the most fixed
    ///   choices among the references, then to `preferred`, then to the lowest id.
    /// - A choice that is missing from the record is derived if a selected node depends on exactly one node of another
    ///   context: an accounting code implies its project, and the project its customer.
    /// - References to deleted nodes select nothing.
    /// - A single template always matches. If there are several and the references contradict all of them, `template`
    ///   is `nil` and the selections are those that fit `preferred`.
    ///
    /// - Parameters:
    ///   - references: The node's `referenceId` by context name.
    ///   - preferred: The template that the entry had before, if any.
    public func meaning(of references: [String: String], preferring preferred: UUID? = nil) -> Meaning {
        Lookup(self).meaning(of: references, preferring: preferred)
    }

    /// Returns the selections of ``meaning(of:preferring:)``.
    public func selections(for references: [String: String]) -> [ReportingSelection] {
        meaning(of: references).selections
    }
}
