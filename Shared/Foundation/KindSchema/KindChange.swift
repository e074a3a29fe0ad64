import Essentials

/// A difference between two versions of an environment's kinds.
package struct KindChange: Equatable, Sendable {
    /// The effect of a change on existing objects and devices.
    package enum Effect: String, Sendable {
        /// All valid objects stay valid.
        case additive
        /// People may write less. Their waiting changes are rejected with a reason.
        case restricting
        /// Existing objects, or changes that wait on devices, may not fit the new version. It is refused while there
        /// are such objects.
        case breaking
    }

    /// The kind, and the field as a JSON Pointer with `*` for any element; empty for the kind itself.
    package let kind: String
    package let path: String
    package let effect: Effect
    /// The change as a sentence without a subject: `was removed`.
    package let text: String

    /// The alternative to a breaking change; `nil` for other changes.
    package var alternative: String? {
        guard effect == .breaking else { return nil }
        return path.isEmpty
            ? "keep the kind, and declare another one"
            : "keep the field, and add one of another name, or a new kind; an integration copies the values"
    }
}

extension EnvironmentKinds {
    /// Returns the differences of a new version, by kind and in the order of its declaration.
    package func changes(to other: EnvironmentKinds) -> [KindChange] {
        Set(kinds.keys).union(other.kinds.keys).sorted().flatMap { name -> [KindChange] in
            guard let old = kinds[name] else {
                return [KindChange(kind: name, path: "", effect: .additive, text: "is new")]
            }
            guard let new = other.kinds[name] else {
                return [KindChange(kind: name, path: "", effect: .breaking, text: "was removed")]
            }
            var comparison = KindComparison(kind: name)
            comparison.compare(old, new)
            return comparison.changes
        }
    }
}

/// Compares two versions of a kind.
private struct KindComparison {
    let kind: String
    var changes: [KindChange] = []

    mutating func add(_ path: String, _ effect: KindChange.Effect, _ text: String) {
        changes.append(KindChange(kind: kind, path: path, effect: effect, text: text))
    }

    mutating func compare(_ old: KindDeclaration, _ new: KindDeclaration) {
        if old.ids != new.ids { add("", .breaking, "has \(new.ids.rawValue) ids instead of \(old.ids.rawValue) ones") }
        for realm in KindDeclaration.RealmName.allCases {
            switch (old.realms.contains(realm), new.realms.contains(realm)) {
            case (true, false): add("", .breaking, "is no longer in realms of the class \(realm.rawValue)")
            case (false, true): add("", .additive, "is also in realms of the class \(realm.rawValue)")
            default: break
            }
        }
        compareTopics(old.topic, new.topic)
        if new.bytesMax < old.bytesMax { add("", .breaking, "allows \(new.bytesMax) bytes instead of \(old.bytesMax)") }
        if new.bytesMax > old.bytesMax { add("", .additive, "allows \(new.bytesMax) bytes instead of \(old.bytesMax)") }
        compare(old.fields, new.fields, "")
        comparePermissions(old, new)
    }

    private mutating func compareTopics(_ old: String?, _ new: String?) {
        switch (old, new) {
        case (nil, let topic?): add("", .additive, "is published on the topic \(topic)")
        case (let topic?, nil): add("", .breaking, "is no longer published on the topic \(topic)")
        case (let topic?, let other?) where topic != other:
            add("", .breaking, "is published on the topic \(other) instead of \(topic)")
        default: break
        }
    }

    /// Compares the permissions cell by cell: two lists may allow the same.
    private mutating func comparePermissions(_ old: KindDeclaration, _ new: KindDeclaration) {
        for realm in KindDeclaration.RealmName.allCases where old.realms.contains(realm) && new.realms.contains(realm) {
            for writer in KindDeclaration.Writer.allCases where writer.realms.contains(realm) {
                for act in KindDeclaration.Act.allCases {
                    let before = old.fields(of: writer, act, in: realm)
                    let after = new.fields(of: writer, act, in: realm)
                    let subject = "\(writer.rawValue) in realms of the class \(realm.rawValue)"
                    switch (before, after) {
                    case (nil, _?): add("", .additive, "allows \(act.rawValue) by: \(subject)")
                    case (_?, nil): add("", .restricting, "no longer allows \(act.rawValue) by: \(subject)")
                    case (let before?, let after?) where act != .delete:
                        let kept = before.filter { new.fieldNames.contains($0) }
                        for name in kept.sorted() where !after.contains(name) {
                            add("/\(name)", .restricting, "can no longer be written at \(act.rawValue) by: \(subject)")
                        }
                        for name in after.subtracting(before).sorted() where old.fieldNames.contains(name) {
                            add("/\(name)", .additive, "can be written at \(act.rawValue) by: \(subject)")
                        }
                    default: break
                    }
                }
            }
        }
    }

    private mutating func compare(_ old: ValueSchema, _ new: ValueSchema, _ path: String) {
        compareTypes(old, new, path)
        compareLimits(old, new, path)
        compareMembers(old, new, path)
        switch (old.items.first, new.items.first) {
        case (let old?, let new?): compare(old, new, path + "/*")
        case (nil, _?): add(path, .breaking, "limits the values of the list")
        case (_?, nil): add(path, .additive, "no longer limits the values of the list")
        case (nil, nil): break
        }
    }

    private mutating func compareTypes(_ old: ValueSchema, _ new: ValueSchema, _ path: String) {
        func names(_ types: Set<ValueSchema.ValueType>?) -> String {
            types.map { $0.map(\.rawValue).sorted().joined(separator: " or ") } ?? "any type"
        }
        func all(_ types: Set<ValueSchema.ValueType>?) -> Set<ValueSchema.ValueType> {
            let types = types ?? Set(ValueSchema.ValueType.allCases)
            // Each integer is also a number.
            return types.contains(.number) ? types.union([.integer]) : types
        }
        let (before, after) = (all(old.types), all(new.types))
        if before != after {
            let isWider = after.isSuperset(of: before)
            add(path, isWider ? .additive : .breaking, "has \(names(new.types)) instead of \(names(old.types))")
        }
        switch (old.values, new.values) {
        case (nil, _?): add(path, .breaking, "allows only some values")
        case (_?, nil): add(path, .additive, "allows all values")
        case (let before?, let after?):
            for value in before where !after.contains(value) { add(path, .breaking, "no longer allows \(value.json)") }
            for value in after where !before.contains(value) { add(path, .additive, "also allows \(value.json)") }
        case (nil, nil): break
        }
        compareText(old.format?.rawValue, new.format?.rawValue, "format", path)
        compareText(old.pattern?.text, new.pattern?.text, "pattern", path)
        compareText(old.reference, new.reference, "reference", path)
        if old.isReadOnly != new.isReadOnly {
            add(path, new.isReadOnly ? .restricting : .additive, new.isReadOnly ? "is read-only" : "is writable")
        }
    }

    private mutating func compareText(_ old: String?, _ new: String?, _ name: String, _ path: String) {
        guard old.map(ScalarText.init) != new.map(ScalarText.init) else { return }
        switch (old, new) {
        case (let old?, nil): add(path, .additive, "no longer has the \(name) \(old)")
        case (nil, let new?): add(path, .breaking, "has the \(name) \(new)")
        default: add(path, .breaking, "has the \(name) \(new ?? "") instead of \(old ?? "")")
        }
    }

    private mutating func compareLimits(_ old: ValueSchema, _ new: ValueSchema, _ path: String) {
        func compare(_ old: SchemaValue?, _ new: SchemaValue?, _ name: String, isMinimum: Bool) {
            guard old != new else { return }
            let text = "has the \(name) \(new?.json ?? "none") instead of \(old?.json ?? "none")"
            let isWider: Bool
            switch (old, new) {
            case (_, nil): isWider = true
            case (nil, _): isWider = false
            case (let old?, let new?): isWider = (new.compared(to: old) == .below) == isMinimum
            }
            add(path, isWider ? .additive : .breaking, text)
        }
        compare(old.minimum, new.minimum, "minimum", isMinimum: true)
        compare(old.maximum, new.maximum, "maximum", isMinimum: false)
        func number(_ value: Int64?) -> SchemaValue? { value.map { .integer($0) } }
        func minimum(_ value: Int64?) -> SchemaValue? { number(value == 0 ? nil : value) }
        compare(minimum(old.lengthMin), minimum(new.lengthMin), "minLength", isMinimum: true)
        compare(number(old.lengthMax), number(new.lengthMax), "maxLength", isMinimum: false)
        compare(number(old.countMax), number(new.countMax), "maxItems", isMinimum: false)
    }

    private mutating func compareMembers(_ old: ValueSchema, _ new: ValueSchema, _ path: String) {
        for property in old.properties {
            let location = SchemaProblem.path(path, property.name)
            if let schema = new.property(property.name) {
                compare(property.schema, schema, location)
            } else {
                add(location, .breaking, "was removed")
            }
        }
        for property in new.properties where old.property(property.name) == nil {
            // Objects that allow all members may have one of this name, of another form.
            let isFree = old.additional != .refused && !path.isEmpty
            add(SchemaProblem.path(path, property.name), isFree ? .breaking : .additive, "is new")
        }
        for name in new.required where !old.required.contains(name) {
            add(SchemaProblem.path(path, name), .breaking, "is required")
        }
        for name in old.required where !new.required.contains(name) {
            add(SchemaProblem.path(path, name), .additive, "is optional")
        }
        switch (old.additional, new.additional) {
        case (.refused, .refused), (.allowed, .allowed): break
        case (_, .allowed): add(path, .additive, "allows other members")
        case (.refused, .matching): add(path, .additive, "allows other members of one form")
        case (_, .refused): add(path, .breaking, "allows no other members")
        case (.allowed, .matching): add(path, .breaking, "limits other members")
        case (.matching(let old), .matching(let new)):
            for (old, new) in zip(old, new) { compare(old, new, path + "/*") }
        }
    }
}

extension KindDeclaration {
    /// Returns the fields that a person may write with an act in a class of realms; `nil` if the act is not allowed.
    package func fields(of writer: Writer, _ act: Act, in realm: RealmName) -> Set<String>? {
        let matching = permissions.filter {
            $0.writers.contains(writer) && $0.realms.contains(realm) && $0.acts.contains(act)
        }
        guard writer.realms.contains(realm), realms.contains(realm), !matching.isEmpty else { return nil }
        let all = fieldNames.filter { fields.property($0)?.isReadOnly == false }
        return matching.reduce(into: []) { $0.formUnion($1.fields ?? all) }
    }
}
