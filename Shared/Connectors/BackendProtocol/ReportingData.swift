public import FoundationEssentials
public import Model

/// What one person may report on.
public struct ReportingData: Equatable, Sendable {
    /// All trees, each node after its parent; roots are nodes too. The same for everybody with the same permissions.
    public var nodes: [Identified<ReportingTreeNode>]
    /// The choices, with the person's own suggestions.
    public var contexts: [Identified<ReportingContext>]
    /// What can be registered.
    public var templates: [Identified<ReportingTemplate>]
    /// Rows of the back end's lists that could not be read: the choices made of them are missing here, and not gone:
    /// until all rows can be read, the poller writes new and changed choices and deletes none.
    public var unreadable: [UnreadableRecord] = []

    /// Reporting data.
    public init(
        nodes: [Identified<ReportingTreeNode>], contexts: [Identified<ReportingContext>],
        templates: [Identified<ReportingTemplate>]
    ) {
        self.nodes = nodes
        self.contexts = contexts
        self.templates = templates
    }

    /// What a record's references stand for.
    public struct Meaning: Equatable, Sendable {
        /// The template of which it is an entry; `nil` when there is none that it could be one of.
        public var template: UUID?
        /// What is chosen in that template's contexts, in their order.
        public var selections: [ReportingSelection]
    }

    /// What a record's references stand for: the template they fit best, and the selections in it.
    ///
    /// - They fit a template better when it has contexts for all of them and they say what is preselected for good in
    ///   it, when the nodes are there, and when no required choice stays open; in that order. Of templates that they
    ///   fit as well, it is the one with the most preselected choices that they say, else `preferred`, else the first
    ///   by id.
    /// - A choice the record does not tell follows when a chosen node depends on exactly one node of another context:
    ///   an accounting code's project, and the project's customer. References to nodes that are gone give nothing.
    /// - With a single template an entry is always one of it. Of several, one that they contradict is none: then there
    ///   is no template, and the selections are those of `preferred`.
    ///
    /// - Parameters:
    ///   - references: Context name → `referenceId`.
    ///   - preferred: The template that it is known to have had.
    public func meaning(of references: [String: String], preferring preferred: UUID? = nil) -> Meaning {
        Lookup(self).meaning(of: references, preferring: preferred)
    }

    /// The selections of ``meaning(of:preferring:)``.
    public func selections(for references: [String: String]) -> [ReportingSelection] {
        meaning(of: references).selections
    }
}
