public import FoundationEssentials

/// A template's choices as displayed for an entry. ``ReportingPicker/form(for:)`` creates it.
public struct ReportingForm: Equatable, Sendable {
    /// A node that a person can select.
    public struct Option: Hashable, Identifiable, Sendable {
        /// The node's id.
        public let id: UUID
        /// The node's title, or its name without one.
        public let title: String
        /// The node's id in the back end.
        public let referenceId: String?
        /// The number of ancestors below the section's root; 0 for a node of a list.
        public let depth: Int

        init(_ id: UUID, _ node: ReportingTreeNode, depth: Int = 0) {
            self.id = id
            title = node.displayName
            referenceId = node.referenceId
            self.depth = depth
        }
    }

    /// A section of a context, with the nodes that can be selected now.
    public struct Section: Equatable, Sendable {
        /// The heading.
        public let name: String
        /// The options in display order, never empty, each once: listed nodes as listed, then those below a root, each
        /// after its parent; siblings by title in lower case, code point by code point, then by id.
        public let options: [Option]
        /// The number of options to display before "more"; at most all.
        public let shownCount: Int
    }

    /// A context as displayed.
    public struct Choice: Equatable, Identifiable, Sendable {
        /// The context's id.
        public let id: UUID
        /// The heading.
        public let name: String
        /// Whether an entry needs a selection.
        public let isRequired: Bool
        /// Whether the context is displayed.
        public let isVisible: Bool
        /// Whether the person can select. Otherwise the preselected nodes apply, and there are no sections.
        public let isChangeable: Bool
        /// The nodes that apply: the entry's own selection, or the preselected nodes. All of them can be selected now.
        public let selected: [UUID]
        /// Whether ``selected`` are the context's preselected nodes, because the entry has no possible selection.
        public let isPreselected: Bool
        /// Selected or preselected nodes that cannot be selected now. The picker's ``ReportingPicker/title(of:)`` has
        /// their titles.
        public let rejected: [UUID]
        /// The sections with options, in the context's order.
        public let sections: [Section]

        /// Returns the options of all sections that match a query, in display order and without duplicates.
        ///
        /// An option matches if each term of the query occurs in its title or reference, ignoring case. Terms are
        /// separated by white space; an empty query matches all options.
        public func options(matching query: String) -> [Option] {
            let terms = query.lowercased().split(whereSeparator: \.isWhitespace)
            var visited: Set<UUID> = []
            return sections.flatMap(\.options).filter { option in
                let texts = [option.title, option.referenceId ?? ""].map { $0.lowercased() }
                let matches = terms.allSatisfy { term in texts.contains { $0.utf8.contains(term.utf8) } }
                return matches && visited.insert(option.id).inserted
            }
        }

        /// Returns the options that were selected most recently, the latest first and without duplicates.
        ///
        /// - Parameters:
        ///   - recent: Entries of the person, the latest first.
        ///   - countMax: Maximum number of suggestions.
        public func suggestions(from recent: [TimeEntry], countMax: Int) -> [Option] {
            var offered: [UUID: Option] = [:]
            for option in sections.flatMap(\.options) where offered[option.id] == nil { offered[option.id] = option }
            var suggestions: [Option] = []
            for selection in recent.lazy.flatMap(\.reporting) where selection.context == id {
                guard suggestions.count < countMax else { break }
                if let option = offered.removeValue(forKey: selection.node) { suggestions.append(option) }
            }
            return suggestions
        }
    }

    /// The contexts in the template's order, hidden ones included.
    public let choices: [Choice]
    /// The entry's possible selections, in the template's order: the value of ``TimeEntry/reporting`` to write.
    ///
    /// Preselected nodes are not included: they apply without a selection.
    public let selections: [ReportingSelection]
    /// The problems of the entry as given, for which it would be rejected.
    public let problems: [ReportingProblem]
}
