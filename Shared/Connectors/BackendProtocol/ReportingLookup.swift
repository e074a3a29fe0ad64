internal import Essentials
package import FoundationEssentials
internal import Model

extension ReportingData {
    /// An index of reporting data that resolves the references of many records.
    package struct Lookup {
        private struct Candidate {
            let id: UUID?
            let contexts: [Identified<ReportingContext>]
        }

        private let templates: [Candidate]
        private let nodes: [UUID: ReportingTreeNode]
        private let nodesByReference: [String: [UUID]]

        /// Maximum depth of a tree.
        private static let depthMax = 64

        package init(_ data: ReportingData) {
            let contexts = Dictionary(data.contexts.map { ($0.id, $0) }) { first, _ in first }
            let templates = data.templates.sorted { $0.id.text < $1.id.text }.map { template in
                Candidate(id: template.id, contexts: template.fields.reportingContexts.compactMap { contexts[$0] })
            }
            self.templates = templates.isEmpty ? [Candidate(id: nil, contexts: data.contexts)] : templates
            nodes = Dictionary(data.nodes.map { ($0.id, $0.fields) }) { first, _ in first }
            nodesByReference = Dictionary(
                grouping: data.nodes.filter { $0.fields.referenceId != nil }, by: { $0.fields.referenceId ?? "" }
            ).mapValues { $0.map(\.id) }
        }

        package func meaning(of references: [String: String], preferring preferred: UUID? = nil) -> Meaning {
            let fits = templates.map { (candidate: $0, fit: fit(of: references, $0)) }
            // Candidates are ordered by id: of equally good ones, the first is chosen.
            var best = fits[0]
            for next in fits.dropFirst() {
                if next.fit.isBetter(than: best.fit) { best = next }
                if next.candidate.id == preferred, !best.fit.isBetter(than: next.fit) { best = next }
            }
            if templates.count == 1 || best.fit.contradictionCount == 0 {
                return Meaning(template: best.candidate.id, selections: best.fit.selections)
            }
            // The references contradict every template: no template, with the selections that fit the preferred one.
            let preferredFit = fits.first { $0.candidate.id == preferred }
            return Meaning(template: nil, selections: (preferredFit ?? best).fit.selections)
        }

        /// The quality of a match between references and a template.
        private struct Fit {
            var selections: [ReportingSelection] = []
            /// References without a context, and fixed choices that differ from the preselected node.
            var contradictionCount = 0
            var unknownCount = 0
            var missingCount = 0
            var fixedCount = 0

            func isBetter(than other: Fit) -> Bool {
                (contradictionCount, unknownCount, missingCount, -fixedCount)
                    < (other.contradictionCount, other.unknownCount, other.missingCount, -other.fixedCount)
            }
        }

        private func fit(of references: [String: String], _ template: Candidate) -> Fit {
            var fit = Fit()
            var chosen: [UUID: UUID] = [:]
            var open: [(node: UUID, context: Identified<ReportingContext>)] = []
            let byName = Dictionary(template.contexts.map { ($0.fields.name, $0) }) { first, _ in first }
            for (name, reference) in references.sorted(by: { $0.key < $1.key }) {
                guard let context = byName[name] else {
                    fit.contradictionCount += 1
                    continue
                }
                guard let node = nodesByReference[reference]?.first(where: { shows($0, context.fields) }) else {
                    fit.unknownCount += 1
                    continue
                }
                open.append((node, context))
            }
            while let (node, context) = open.popLast() {
                guard chosen[context.id] == nil else { continue }
                chosen[context.id] = node
                guard let dependencies = nodes[node]?.dependencies, dependencies.count == 1 else { continue }
                let others = template.contexts.filter { chosen[$0.id] == nil && shows(dependencies[0], $0.fields) }
                if let other = others.first { open.append((dependencies[0], other)) }
            }
            fit.selections = template.contexts.compactMap { context in
                chosen[context.id].map { ReportingSelection(context: context.id, node: $0) }
            }
            for context in template.contexts {
                let isFixed = context.fields.isFixed && !context.fields.preselected.isEmpty
                switch chosen[context.id] {
                case let node? where isFixed && context.fields.preselected.contains(node): fit.fixedCount += 1
                case _ where isFixed: fit.contradictionCount += 1
                case nil where context.fields.required: fit.missingCount += 1
                default: break
                }
            }
            return fit
        }

        /// Returns whether the node belongs to one of the context's trees.
        private func shows(_ node: UUID, _ context: ReportingContext) -> Bool {
            var top = node
            for _ in 0..<Self.depthMax {
                guard let parent = nodes[top]?.parent else { break }
                top = parent
            }
            return context.sections.contains { $0.rootNode == top }
        }
    }
}
