/// A committed record, or a record in an edit session.
///
/// Source: `GET …/records/{type}/{id}` of the vendor's sample app.
package struct Record: Sendable, Equatable {
    /// The display id, also used in paths: `SAMPL00000001`.
    package let id: String
    /// The fields in the server's order, which is unspecified.
    package let fields: [Field]

    package subscript(_ name: String) -> Field? { fields.first { $0.name == name } }

    /// The mandatory fields without a value. A blank value counts as none.
    package var missing: [String] {
        fields.filter { $0.requiredness == .mandatory && $0.isReadable && $0.isBlank }.map(\.name)
    }
}

/// A field of a record.
package struct Field: Sendable, Equatable {
    /// Whether the field must have a value. It may change with an action and with the value of another field.
    package enum Requiredness: Sendable, Equatable {
        case mandatory, optional, readOnly
        /// Another requiredness of the server; the field may be written.
        case other(String)
    }

    package let name: String
    /// The server's name of the type, such as `SHORT_STRING`; `nil` if the response has none.
    package let type: String?
    /// Empty without a value.
    package let value: String
    /// Whether the value is a text; otherwise ``value`` is empty.
    package let isReadable: Bool
    package let requiredness: Requiredness
    /// The current choices, which may depend on other fields; `nil` if the response has no list.
    package let choices: [String]?
    /// The server's message about the value.
    package let message: String?

    /// Whether the value is empty or blank.
    package var isBlank: Bool { value.allSatisfy(\.isWhitespace) }
}

/// A new value of a field.
package struct FieldValue: Sendable, Equatable, Codable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A type of records with its actions and fields.
///
/// Source: `GET …/records/{type}`.
package struct RecordType: Sendable, Equatable {
    /// An action on a record, such as a change of its state.
    package struct Action: Sendable, Equatable {
        /// The name that requests contain. The destination state is never sent.
        package let name: String
        /// `_CHANGE_STATE`, `_MODIFY`, `_SUBMIT`, `_DELETE`, …
        package let kind: String
        /// The states in which the action is allowed.
        package let sourceStates: [String]
        package let destinationState: String?
    }

    package let name: String
    package let actions: [Action]
    package let fields: [Field]

    /// Returns the actions that change the state from `state`.
    package func changes(from state: String) -> [Action] {
        actions.filter { $0.kind == "_CHANGE_STATE" && $0.sourceStates.contains(state) }
    }
}
