/// The static properties of a kind: its row of the table of kinds, ``Kind/row``.
///
/// A row is declared in the file of the kind's fields. It does not contain rules: in the realm gateway, `Permissions`
/// decides who may write an object and `MutationRules` how a mutation is processed.
package struct KindRow: Sendable {
    /// The origin of the ids of a kind's objects.
    package enum IDs: Equatable, Sendable {
        /// The creator of an object chooses a random id, which is not reused after a delete.
        case random
        /// The id is derived from what the object describes, so that a recreated object has the same id.
        case natural
    }

    /// The type of the fields; `nil` for a kind that an environment declares.
    package let fields: (any KindFields.Type)?
    /// The names of the fields, in display order.
    package let fieldNames: [String]
    /// The classes of the realms in which devices and integrations access such objects; empty for the services' own
    /// kinds.
    package let realms: [RealmClass.Name]
    /// The origin of the ids.
    package let ids: IDs
    /// Maximum size of an object's fields, in bytes of JSON.
    package let fieldsBytesMax: Int
    /// The permissions that such objects define; `nil` if changes do not affect permissions.
    package let permissions: PermissionSource?
    /// The topic on which changes are published; `nil` if no service consumes them.
    package let route: Route?

    /// Creates a row.
    ///
    /// - Parameter names: The coding keys with which the fields are read and written.
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

    /// Creates the row of a kind that an environment declares.
    init(names: [String], in realms: [RealmClass.Name], ids: IDs, bytesMax: Int) {
        (fields, fieldNames, self.realms, self.ids, fieldsBytesMax) = (nil, names, realms, ids, bytesMax)
        (permissions, route) = (nil, nil)
    }
}

/// The fields of the objects of one kind; any value that can be decoded has the required form.
package protocol KindFields: Codable, Equatable, Sendable {
    /// The kind's row of the table of kinds.
    static var row: KindRow { get }
    /// Describes the first problem of decoded fields as a sentence for their author; `nil` if they are valid.
    var objection: String? { get }
}

extension KindFields {
    /// Accepts all decoded fields.
    package var objection: String? { nil }
}

/// The permissions that the objects of a kind define. When one changes, devices' permissions are reloaded.
package enum PermissionSource: CaseIterable, Sendable {
    /// The catalogue that a person can read.
    case user
    /// A person's role.
    case person
    /// A person's membership in a team.
    case membership
    /// The existence of a team.
    case team
    /// The owner and the recipient of shared items.
    case share
}
