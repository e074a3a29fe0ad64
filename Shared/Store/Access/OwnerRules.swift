package import Essentials
package import FoundationEssentials
package import Model

/// Rules for an object's references to its owner and to other people, shared by the device API and imports.
package enum OwnerRules {
    /// Checks the id of an object that exists once per pair and is therefore derived from both ids.
    ///
    /// - Returns: The reason why the id does not match the fields; `nil` if it does, or the kind has no derived ids.
    package static func objection(to id: UUID, of kind: Kind, _ fields: JSONObject) -> String? {
        let names: (first: String, second: String)
        switch kind {
        case .membership: names = ("person", "team")
        case .sharedItem: names = ("item", "recipient")
        default: return nil
        }
        guard let first = fields.id(of: names.first), let second = fields.id(of: names.second) else { return nil }
        let expected =
            kind == .membership ? Membership.id(of: first, in: second) : SharedItem.id(of: first, with: second)
        guard id != expected else { return nil }
        return
            "the id of this \(kind.rawValue) must be \(expected.text): the \(names.first)'s first eight bytes, then "
            + "the \(names.second)'s last eight"
    }

    /// Checks that a person does not share with themselves and publishes only their own addresses for lookup.
    ///
    /// - Parameters:
    ///   - person: The id of the `Person` whose object it is.
    ///   - emails: That person's addresses.
    /// - Returns: The reason why the object cannot belong to this person; `nil` if it can.
    package static func objection(
        to kind: Kind, _ fields: JSONObject, of person: UUID, emails: [String]
    ) -> String? {
        switch kind {
        case .sharedItem where fields.id(of: "recipient") == person:
            "'recipient' must be another person than the owner"
        case .personLookup where !emails.contains(fields.text(of: "email") ?? ""):
            "'email' must be the person's own: \(emails.joined(separator: " or "))"
        default: nil
        }
    }

    /// A reference to an object that must exist when the referring object is put: a `FieldTask` in the realm of the
    /// referring object, others in `/common`.
    package struct RequiredReference: Hashable, Sendable {
        /// The field with the id, or `id` for the object's own.
        package let field: String
        /// The kind of the referenced object.
        package let kind: Kind
        /// The id of the referenced object.
        package let id: UUID

        /// The problem of a reference to an object that does not exist, or was deleted.
        package var problem: String {
            let realm = isInReferringRealm ? "this realm" : "/common"
            return "'\(field)' must be the id of a \(kind.rawValue); \(realm) has no \(kind.rawValue) \(id.text)"
        }

        /// Whether the object is in the realm of the referring object, instead of `/common`.
        package var isInReferringRealm: Bool { kind == .fieldTask }
    }

    /// Whether objects of a kind have required references.
    package static func hasRequiredReferences(_ kind: Kind) -> Bool {
        [.membership, .personLookup, .sharedItem, .taskNote].contains(kind)
    }

    /// Returns the required references of an object: those that no service removes if their object never existed.
    package static func requiredReferences(of kind: Kind, _ id: UUID, _ fields: JSONObject) -> [RequiredReference] {
        let named: [(field: String, kind: Kind, id: UUID?)] =
            switch kind {
            case .membership:
                [("person", .person, fields.id(of: "person")), ("team", .team, fields.id(of: "team"))]
            case .personLookup: [("id", .person, id)]
            case .taskNote: [("task", .fieldTask, fields.id(of: "task"))]
            case .sharedItem: [("recipient", .person, fields.id(of: "recipient"))]
            default: []
            }
        return named.compactMap { name in
            name.id.map { RequiredReference(field: name.field, kind: name.kind, id: $0) }
        }
    }
}
