/// A query of the workspace: columns and filter of a record type.
///
/// Source: the query documents of the vendor's sample app (`QueryDef`).
package struct QueryDefinition: Sendable, Equatable {
    package enum Sort: String, Sendable, Codable {
        case none = "NO_SORT"
        case descending = "SORT_DESC"
    }

    /// A column of the result.
    package struct Column: Sendable, Equatable {
        /// A field of the record, or of a referenced record: `history.action_timestamp`. A field with several
        /// references multiplies the rows.
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
    /// The `dbId` of the query's folder.
    package var folder: String
    package var recordType: String
    /// Unique columns in the order of a row's values.
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

/// A conjunction or disjunction of conditions.
package struct QueryFilter: Sendable, Equatable {
    /// The logical operator. Source: the sample app for `all`; ``CompassAssumptions`` for `any`.
    package enum Joint: String, Sendable, Codable {
        case all = "BOOL_OP_AND"
        case any = "BOOL_OP_OR"
    }

    /// A condition on one field.
    package struct Condition: Sendable, Equatable {
        package var field: String
        package var comparison: Comparison
        /// ``currentUser`` is replaced by the calling user; times are in the format of ``CompassTime``.
        package var values: [String]

        package init(_ field: String, _ comparison: Comparison, _ values: [String]) {
            self.field = field
            self.comparison = comparison
            self.values = values
        }
    }

    /// The login name of the user who runs the query.
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

/// A comparison of a field with values. Queries of people may have others than the constants here.
package struct Comparison: RawRepresentable, Sendable, Equatable, Codable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    // Source: the vendor's sample app.
    package static let equals = Comparison(rawValue: "COMP_OP_EQ")
    package static let differs = Comparison(rawValue: "COMP_OP_NEQ")
    package static let isAfter = Comparison(rawValue: "COMP_OP_GT")
    package static let isOneOf = Comparison(rawValue: "COMP_OP_IN")
}
