/// A query of the workspace: which columns of which records.
///
/// Source: the query documents of the vendor's sample app (`QueryDef`).
package struct QueryDefinition: Sendable, Equatable {
    package enum Sort: String, Sendable, Codable {
        case none = "NO_SORT"
        case descending = "SORT_DESC"
    }

    /// A column of the result.
    package struct Column: Sendable, Equatable {
        /// A field of the record, or one of a record it refers to: `history.action_timestamp`. A field that refers to
        /// many multiplies the rows.
        package var field: String
        package var sort: Sort

        package init(_ field: String, sort: Sort = .none) {
            self.field = field
            self.sort = sort
        }
    }

    /// The `dbId`; `nil` before it is created.
    package var id: String?
    package var name: String
    /// The `dbId` of the folder it is in.
    package var folder: String
    package var recordType: String
    /// In the order in which a row has them; each once.
    package var columns: [Column]
    package var filter: QueryFilter

    package init(
        name: String, folder: String, recordType: String, columns: [Column], filter: QueryFilter
    ) {
        self.name = name
        self.folder = folder
        self.recordType = recordType
        self.columns = columns
        self.filter = filter
    }
}

/// Conditions that all hold, or of which one does.
package struct QueryFilter: Sendable, Equatable {
    /// How conditions are joined. Source: the sample app for `all`; ``CompassAssumptions`` for `any`.
    package enum Joint: String, Sendable, Codable {
        case all = "BOOL_OP_AND"
        case any = "BOOL_OP_OR"
    }

    /// A condition on one field.
    package struct Condition: Sendable, Equatable {
        package var field: String
        package var comparison: Comparison
        /// ``currentUser`` stands for whoever asks; times are as ``CompassTime`` writes them.
        package var values: [String]

        package init(_ field: String, _ comparison: Comparison, _ values: [String]) {
            self.field = field
            self.comparison = comparison
            self.values = values
        }
    }

    /// The login name of whoever runs the query.
    package static let currentUser = "[CURRENT_USER]"

    package var joint: Joint
    package var conditions: [Condition]
    package var children: [QueryFilter]

    package init(_ joint: Joint = .all, _ conditions: [Condition] = [], children: [QueryFilter] = []) {
        self.joint = joint
        self.conditions = conditions
        self.children = children
    }
}

/// How a field is compared with values. One that is not named here can be in a query that a person made.
package struct Comparison: RawRepresentable, Sendable, Equatable, Codable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    // Seen in the vendor's sample app.
    package static let equals = Comparison(rawValue: "COMP_OP_EQ")
    package static let differs = Comparison(rawValue: "COMP_OP_NEQ")
    package static let isAfter = Comparison(rawValue: "COMP_OP_GT")
    package static let isOneOf = Comparison(rawValue: "COMP_OP_IN")
    // Their spelling is assumed: see `CompassAssumptions`.
    package static let isBefore = Comparison(rawValue: "COMP_OP_LT")
    package static let isNull = Comparison(rawValue: "COMP_OP_IS_NULL")
    package static let isNotNull = Comparison(rawValue: "COMP_OP_IS_NOT_NULL")
}
