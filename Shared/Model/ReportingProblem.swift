public import FoundationEssentials

/// A problem of an entry's template or selections, which prevents the submission.
public struct ReportingProblem: Hashable, Sendable {
    /// The sort of problem, for programs. The raw values are stable.
    public enum Code: String, CaseIterable, Sendable {
        /// The entry has no template.
        case templateMissing = "template-missing"
        /// The entry's template does not exist in the person's realm.
        case templateUnavailable = "template-unavailable"
        /// The template refers to a context that does not exist in the person's realm.
        case contextUnavailable = "context-unavailable"
        /// The entry selects a node for a context that the template does not have.
        case contextNotInTemplate = "context-not-in-template"
        /// The entry selects other nodes than the preselected ones of a hidden or read-only context.
        case selectionFixed = "selection-fixed"
        /// A required context has neither a selected nor a preselected node.
        case selectionMissing = "selection-missing"
        /// A context has several nodes; back ends store one.
        case selectionAmbiguous = "selection-ambiguous"
        /// The node does not exist in the person's catalogue.
        case nodeUnavailable = "node-unavailable"
        /// No section of the context displays the node.
        case nodeNotOffered = "node-not-offered"
        /// None of the node's dependencies is selected in an earlier context.
        case nodeExcluded = "node-excluded"
    }

    /// The sort of problem.
    public let code: Code
    /// The id of the context concerned; `nil` for a problem of the template.
    public let context: UUID?
    /// The id of the node concerned; `nil` for a problem of the context or template.
    public let node: UUID?
    /// A sentence for the person who wrote the entry, in English, as in the entry's status log.
    public let message: String

    init(_ code: Code, context: UUID? = nil, node: UUID? = nil, _ message: String) {
        self.code = code
        self.context = context
        self.node = node
        self.message = message
    }
}
