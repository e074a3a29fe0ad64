/// What is looked up about a kind: its row of the table of kinds, ``Kind/row``.
///
/// A row stands in the file of the kind's fields. What is *decided* by an object's kind is not in it: in the realm
/// gateway `Permissions` says who may write what, and `MutationRules` what becomes of a mutation.
package struct KindRow: Sendable {
    /// Where the ids of a kind's objects come from.
    package enum IDs: Equatable, Sendable {
        /// Whoever makes an object makes its id up; it is not used again after a delete.
        case random
        /// The id says what the object is about, so that it comes again with it.
        case natural
    }

    /// The type of the fields.
    package let fields: any KindFields.Type
    /// The names of the fields, in the order in which people read them.
    package let fieldNames: [String]
    /// The classes of the realms in which devices and integrations find such objects; none: they are services' own.
    package let realms: [RealmClass.Name]
    /// Where the ids come from.
    package let ids: IDs
    /// The most bytes that the fields of an object may have, as JSON.
    package let fieldsBytesMax: Int
    /// What of people's permissions such objects say; `nil`: a change of one permits nobody more or less.
    package let permissions: PermissionSource?
    /// Where changes are published; `nil` when no service reacts to them.
    package let route: Route?

    /// A row.
    ///
    /// - Parameter names: The fields' coding keys, by which they are read and written.
    init<Fields: KindFields, Names: CodingKey & CaseIterable>(
        _ fields: Fields.Type, _ names: Names.Type, in realms: [RealmClass.Name], ids: IDs = .random,
        bytesMax: Int = Kind.fieldsBytesMax, permissions: PermissionSource? = nil, route: Route? = nil
    ) {
        self.fields = fields
        fieldNames = names.allCases.map(\.stringValue)
        self.realms = realms
        self.ids = ids
        fieldsBytesMax = bytesMax
        self.permissions = permissions
        self.route = route
    }
}

/// The fields of the objects of one kind. That they can be decoded is what makes them such fields.
package protocol KindFields: Codable, Equatable, Sendable {
    /// The kind's row of the table of kinds.
    static var row: KindRow { get }
    /// What is wrong with fields that can be decoded, as a sentence for whoever writes them; `nil` when nothing is.
    var objection: String? { get }
}

extension KindFields {
    /// Nothing is wrong with fields that can be decoded.
    package var objection: String? { nil }
}

/// What of people's permissions the objects of a kind say. A device's permissions are read again when one changes.
package enum PermissionSource: CaseIterable, Sendable {
    /// The catalogue that a person may read.
    case user
    /// A person's role.
    case person
    /// That a person is in a team.
    case membership
    /// That there is a team.
    case team
    /// Who shares with whom.
    case share
}
