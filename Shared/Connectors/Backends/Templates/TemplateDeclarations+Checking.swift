import Essentials

extension TemplateDeclarations {
    /// How much can be declared: what a phone can show, and a request can bring.
    private enum Bounds {
        static let templates = 50
        static let contexts = 20
        static let lists = 100
        static let nodes = 5_000
        static let textLength = 200
        static let depth = 32
    }

    /// What is wrong with it for a kind of back end, each problem with its place. Empty when it can be used.
    package func problems(for vocabulary: BackendVocabulary) -> [String] {
        var check = DeclarationCheck(declarations: self, vocabulary: vocabulary)
        check.all()
        return check.problems
    }

    /// Fields that have another name here than in `former`. What entries say is kept by names: once there are some, a
    /// field keeps the one it has.
    package func renamings(of former: TemplateDeclarations) -> [String] {
        let (old, new) = (FieldNames(former), FieldNames(self))
        return old.fields.intersection(new.fields).sorted().compactMap { field in
            guard let was = old.name(of: field), let name = new.name(of: field), was != name else { return nil }
            return "\(field) is called '\(was)' in entries there are, not '\(name)': it keeps its name"
        }
    }

    private struct DeclarationCheck {
        let declarations: TemplateDeclarations
        let vocabulary: BackendVocabulary
        var problems: [String] = []
        /// `nil` for a name that stands for no field.
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
            // Ids are made from names without regard to case.
            unique(declarations.lists.map { $0.name.lowercased() }, "lists", "name")
            unique(declarations.templates.map(\.key), "templates", "key")
            for list in declarations.lists { check(list) }
            for template in declarations.templates { check(template) }
        }

        private mutating func bound(_ count: Int, _ range: ClosedRange<Int>, _ what: String) {
            if !range.contains(count) {
                problems.append("\(what): there are \(count), and can be \(range.lowerBound) to \(range.upperBound)")
            }
        }

        private mutating func unique(_ values: [String], _ place: String, _ what: String) {
            var seen: Set<String> = []
            for value in values where !seen.insert(value).inserted {
                problems.append("\(place): the \(what) '\(value)' is there twice")
            }
        }

        private mutating func text(_ text: String, _ place: String) {
            if !DisplayName.isVisible(text) || text.count > Bounds.textLength
                || text.unicodeScalars.contains(where: { $0.value < 32 })
            {
                problems.append(
                    "\(place) must be 1 to \(Bounds.textLength) characters, one visible, and no control characters"
                )
            }
        }

        private func depth(of nodes: [Node]) -> Int {
            nodes.isEmpty ? 0 : 1 + (nodes.map { depth(of: $0.children) }.max() ?? 0)
        }

        private mutating func name(_ name: String, _ place: String) {
            text(name, "\(place): its name")
            if name.contains("/") { problems.append("\(place): its name must not contain '/'") }
        }

        private mutating func check(_ list: List) {
            let place = "list '\(list.name)'"
            name(list.name, place)
            if vocabulary.list(named: list.name) != nil {
                problems.append("\(place): \(vocabulary.backend) has a list of that name")
            }
            unique(list.allNodes.map { $0.referenceId.lowercased() }, place, "referenceId")
            unique(list.allNodes.map { String(FieldNames.stripped($0.referenceId)) }, place, "number")
            if depth(of: list.nodes) > Bounds.depth {
                problems.append("\(place): its tree has more than \(Bounds.depth) levels")
            }
            for node in list.allNodes {
                text(node.referenceId, "\(place): a referenceId")
                text(node.title, "\(place), \(node.referenceId): its title")
            }
        }

        private mutating func check(_ template: Template) {
            let place = "template '\(template.key)'"
            let isKey =
                !template.key.isEmpty && template.key.utf8.count <= 32
                && template.key.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
            if !isKey { problems.append("\(place): a key is 1 to 32 small letters, digits and hyphens") }
            text(template.name, "\(place): its name")
            text(template.type, "\(place): its type")
            bound(template.contexts.count, 1...Bounds.contexts, "\(place): contexts")
            unique(template.contexts.map { DisplayName.key($0.name) }, "\(place): contexts", "name")
            var before: Set<String> = []
            for context in template.contexts {
                check(context, in: place, after: before)
                before.insert(context.list)
            }
            for field in vocabulary.fields where field.isRequired {
                let isGiven = template.contexts.contains { $0.field == field.name && $0.required }
                if !isGiven { problems.append("\(place): a required context must have the field \(field.name)") }
            }
            if !template.contexts.contains(where: { $0.field != nil }) {
                problems.append("\(place): none of its contexts has a field, so nothing of it would be recorded")
            }
        }

        private mutating func check(_ context: Context, in template: String, after before: Set<String>) {
            let place = "\(template), context '\(context.name)'"
            name(context.name, place)
            let list = vocabulary.list(named: context.list)
            let declared = declarations.list(named: context.list)
            if list == nil && declared == nil {
                let known = (vocabulary.lists.map(\.name) + declarations.lists.map(\.name)).joined(separator: ", ")
                problems.append("\(place): there is no list '\(context.list)'; there are \(known)")
            }
            if let after = list?.after, !before.contains(after) {
                problems.append(
                    "\(place): the choices of \(context.list) depend on one of \(after): put a context with that list "
                        + "before it")
            }
            checkField(context, list, declared, place)
            checkPreselected(context, declared, place)
        }

        private mutating func checkField(
            _ context: Context, _ list: BackendVocabulary.List?, _ declared: List?, _ place: String
        ) {
            if let known = fieldByName.updateValue(context.field, forKey: context.name), known != context.field {
                let other = known ?? "no field"
                problems.append("\(place): its name means \(other) in another template; give it another name")
            }
            guard let name = context.field else {
                if declared != nil {
                    problems.append("\(place): without a field nobody would know what was chosen from a list like this")
                }
                return
            }
            guard let field = vocabulary.field(named: name) else {
                let known = vocabulary.fields.map(\.name).joined(separator: ", ")
                problems.append("\(place): \(vocabulary.backend) has no field '\(name)'; there are \(known)")
                return
            }
            if let list, list.field != name {
                let what = list.field.map { "go into \($0)" } ?? "are recorded in no field"
                problems.append("\(place): the choices of \(list.name) \(what), not into \(name)")
            }
            for node in declared?.allNodes ?? [] {
                if node.referenceId.utf16.count > field.lengthMax {
                    problems.append(
                        "\(place): '\(node.referenceId)' is longer than the \(field.lengthMax) characters of \(name)")
                }
                if field.isNumber, Int32(node.referenceId) == nil {
                    problems.append("\(place): '\(node.referenceId)' is no number, as \(name) is")
                }
            }
            if let other = nameByField.updateValue(context.name, forKey: name), other != context.name {
                problems.append("\(place): \(name) is called '\(other)' elsewhere; a field has one name")
            }
        }

        private mutating func checkPreselected(_ context: Context, _ declared: List?, _ place: String) {
            let known = declared.map { Set($0.allNodes.map(\.referenceId)) }
            for reference in context.preselected where known.map({ !$0.contains(reference) }) ?? false {
                problems.append("\(place): preselected '\(reference)' is not in the list '\(context.list)'")
            }
            if context.preselected.count > 1, context.field != nil {
                problems.append("\(place): a field holds one choice, so one at most can be preselected")
            }
            if context.isFixed, context.required, context.preselected.isEmpty {
                problems.append("\(place): nobody can choose anything here, and nothing is preselected")
            }
        }
    }
}
