import Essentials

extension TemplateDeclarations {
    /// Limits of declarations, given by the display of a phone and the size of a request.
    private enum Bounds {
        static let templates = 50
        static let contexts = 20
        static let lists = 100
        static let nodes = 5_000
        static let textLength = 200
        static let depth = 32
    }

    /// Returns the problems of the declarations for a kind of back end, each with its location; empty if they are
    /// valid.
    package func problems(for vocabulary: BackendVocabulary) -> [String] {
        var check = DeclarationCheck(declarations: self, vocabulary: vocabulary)
        check.all()
        return check.problems
    }

    /// Returns fields whose name differs from `former`. Stored entries refer to choices by name, so once there are
    /// entries, a field keeps its name.
    package func renamings(of former: TemplateDeclarations) -> [String] {
        let (old, new) = (FieldNames(former), FieldNames(self))
        return old.fields.intersection(new.fields).sorted().compactMap { field in
            guard let was = old.name(of: field), let name = new.name(of: field), was != name else { return nil }
            return "\(field) is called '\(was)' in existing entries, not '\(name)': it must keep its name"
        }
    }

    private struct DeclarationCheck {
        let declarations: TemplateDeclarations
        let vocabulary: BackendVocabulary
        var problems: [String] = []
        /// `nil` for a name without a field.
        private var fieldByName: [String: String?] = [:]
        private var nameByField: [String: String] = [:]

        init(declarations: TemplateDeclarations, vocabulary: BackendVocabulary) {
            self.declarations = declarations
            self.vocabulary = vocabulary
        }

        mutating func all() {
            let nodeCount = declarations.lists.reduce(0) { $0 + $1.allNodes.count }
            bound(declarations.templates.count, 1...Bounds.templates, "templates")
            bound(declarations.lists.count, 0...Bounds.lists, "lists")
            bound(nodeCount, 0...Bounds.nodes, "nodes of all lists")
            // Ids are derived from names case-insensitively.
            unique(declarations.lists.map { $0.name.lowercased() }, "lists", "name")
            unique(declarations.templates.map(\.key), "templates", "key")
            for list in declarations.lists { check(list) }
            for template in declarations.templates { check(template) }
        }

        private mutating func bound(_ count: Int, _ range: ClosedRange<Int>, _ name: String) {
            if !range.contains(count) {
                problems.append("\(name): there are \(count); allowed: \(range.lowerBound) to \(range.upperBound)")
            }
        }

        private mutating func unique(_ values: [String], _ location: String, _ property: String) {
            var seen: Set<String> = []
            for value in values where !seen.insert(value).inserted {
                problems.append("\(location): the \(property) '\(value)' occurs twice")
            }
        }

        private mutating func text(_ text: String, _ location: String) {
            if !DisplayName.isVisible(text) || text.count > Bounds.textLength
                || text.unicodeScalars.contains(where: { $0.value < 32 })
            {
                problems.append(
                    "\(location) must be 1 to \(Bounds.textLength) characters, one visible, and no control characters"
                )
            }
        }

        private func depth(of nodes: [Node]) -> Int {
            nodes.isEmpty ? 0 : 1 + (nodes.map { depth(of: $0.children) }.max() ?? 0)
        }

        private mutating func name(_ name: String, _ location: String) {
            text(name, "\(location): its name")
            if name.contains("/") { problems.append("\(location): its name must not contain '/'") }
        }

        private mutating func check(_ list: List) {
            let location = "list '\(list.name)'"
            name(list.name, location)
            if vocabulary.list(named: list.name) != nil {
                problems.append("\(location): \(vocabulary.backend) has a list of that name")
            }
            unique(list.allNodes.map { $0.referenceId.lowercased() }, location, "referenceId")
            unique(list.allNodes.map { String(FieldNames.stripped($0.referenceId)) }, location, "number")
            if depth(of: list.nodes) > Bounds.depth {
                problems.append("\(location): its tree has more than \(Bounds.depth) levels")
            }
            for node in list.allNodes {
                text(node.referenceId, "\(location): a referenceId")
                text(node.title, "\(location), \(node.referenceId): its title")
            }
        }

        private mutating func check(_ template: Template) {
            let location = "template '\(template.key)'"
            let isKey =
                !template.key.isEmpty && template.key.utf8.count <= 32
                && template.key.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
            if !isKey { problems.append("\(location): a key is 1 to 32 small letters, digits and hyphens") }
            text(template.name, "\(location): its name")
            text(template.type, "\(location): its type")
            bound(template.contexts.count, 1...Bounds.contexts, "\(location): contexts")
            unique(template.contexts.map { DisplayName.key($0.name) }, "\(location): contexts", "name")
            var before: Set<String> = []
            for context in template.contexts {
                check(context, in: location, after: before)
                before.insert(context.list)
            }
            for field in vocabulary.fields where field.isRequired {
                let isGiven = template.contexts.contains { $0.field == field.name && $0.required }
                if !isGiven { problems.append("\(location): a required context must have the field \(field.name)") }
            }
            if !template.contexts.contains(where: { $0.field != nil }) {
                problems.append("\(location): none of its contexts has a field, so nothing of it would be recorded")
            }
        }

        private mutating func check(_ context: Context, in template: String, after before: Set<String>) {
            let location = "\(template), context '\(context.name)'"
            name(context.name, location)
            let list = vocabulary.list(named: context.list)
            let declared = declarations.list(named: context.list)
            if list == nil && declared == nil {
                let available = (vocabulary.lists.map(\.name) + declarations.lists.map(\.name)).joined(separator: ", ")
                problems.append("\(location): there is no list '\(context.list)'; available: \(available)")
            }
            if let after = list?.after, !before.contains(after) {
                problems.append(
                    "\(location): the choices of \(context.list) depend on one of \(after): add a context with that "
                        + "list before it")
            }
            checkField(context, list, declared, location)
            checkPreselected(context, declared, location)
        }

        private mutating func checkField(
            _ context: Context, _ list: BackendVocabulary.List?, _ declared: List?, _ location: String
        ) {
            if let field = fieldByName.updateValue(context.field, forKey: context.name), field != context.field {
                let other = field ?? "no field"
                problems.append("\(location): its name means \(other) in another template; give it another name")
            }
            guard let name = context.field else {
                if declared != nil {
                    problems.append("\(location): a declared list needs a field, otherwise the choice is not recorded")
                }
                return
            }
            guard let field = vocabulary.field(named: name) else {
                let available = vocabulary.fields.map(\.name).joined(separator: ", ")
                problems.append("\(location): \(vocabulary.backend) has no field '\(name)'; available: \(available)")
                return
            }
            if let list, list.field != name {
                let field = list.field.map { "are recorded in \($0)" } ?? "are recorded in no field"
                problems.append("\(location): the choices of \(list.name) \(field), not in \(name)")
            }
            for node in declared?.allNodes ?? [] {
                if node.referenceId.utf16.count > field.lengthMax {
                    problems.append(
                        "\(location): '\(node.referenceId)' is longer than the \(field.lengthMax) characters of \(name)"
                    )
                }
                if field.isNumber, Int32(node.referenceId) == nil {
                    problems.append("\(location): '\(node.referenceId)' is not a number, which \(name) requires")
                }
            }
            if let other = nameByField.updateValue(context.name, forKey: name), other != context.name {
                problems.append("\(location): \(name) is called '\(other)' in another context; a field has one name")
            }
        }

        private mutating func checkPreselected(_ context: Context, _ declared: List?, _ location: String) {
            let references = declared.map { Set($0.allNodes.map(\.referenceId)) }
            for reference in context.preselected where references.map({ !$0.contains(reference) }) ?? false {
                problems.append("\(location): preselected '\(reference)' is not in the list '\(context.list)'")
            }
            if context.preselected.count > 1, context.field != nil {
                problems.append("\(location): a field stores one choice, so at most one can be preselected")
            }
            if context.isFixed, context.required, context.preselected.isEmpty {
                problems.append("\(location): a required choice that people cannot change needs a preselected value")
            }
        }
    }
}
