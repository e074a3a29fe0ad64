/// A record, as it is or as it is being edited.
///
/// Source: `GET …/records/{type}/{id}` of the vendor's sample app.
package struct Record: Sendable, Equatable {
    /// What people call it, and paths too: `SAMPL00000001`.
    package let id: String
    /// In the server's own order, which is nobody's to rely on.
    package let fields: [Field]

    package subscript(_ name: String) -> Field? { fields.first { $0.name == name } }

    /// The fields that must have a value and have none; a value of blanks counts as none.
    package var missing: [String] {
        fields.filter { $0.requiredness == .mandatory && $0.isBlank }.map(\.name)
    }
}

/// A field of a record.
package struct Field: Sendable, Equatable {
    /// Whether it must have a value. It may change with an action, and with the value of another field.
    package enum Requiredness: Sendable, Equatable {
        case mandatory, optional, readOnly
        /// Whatever else a server says; it may be written.
        case other(String)
    }

    package let name: String
    /// Empty for none.
    package let value: String
    package let requiredness: Requiredness
    /// What can be chosen now, which may depend on other fields; `nil` where the answer has no list.
    package let choices: [String]?
    /// What the server says is wrong with the value, or explains it.
    package let message: String?

    /// Whether it has no value but blanks.
    package var isBlank: Bool { value.allSatisfy(\.isWhitespace) }
}

/// A value that a field is to get.
package struct FieldValue: Sendable, Equatable, Codable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A type of records with what can be done with them.
///
/// Source: `GET …/records/{type}`.
package struct RecordType: Sendable, Equatable {
    /// An action, which is what a state is changed by.
    package struct Action: Sendable, Equatable {
        /// What is sent to do it: the state it leads to is never sent.
        package let name: String
        /// `_CHANGE_STATE`, `_MODIFY`, `_SUBMIT`, `_DELETE`, …
        package let kind: String
        /// The states from which it can be done.
        package let sourceStates: [String]
        package let destinationState: String?
    }

    package let name: String
    package let actions: [Action]
    package let fields: [Field]

    /// The actions that change the state from `state`.
    package func changes(from state: String) -> [Action] {
        actions.filter { $0.kind == "_CHANGE_STATE" && $0.sourceStates.contains(state) }
    }
}
