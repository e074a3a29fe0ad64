/// A repository with the databases in it.
///
/// Source: `GET /repos?getDbs=true`.
package struct Repository: Sendable, Equatable {
    package let name: String
    /// Empty where they were not asked for.
    package let databases: [String]
}

/// What a database says of itself.
///
/// Source: the vendor's page "Records and record types", `GET /repos/{repo}/databases/{db}`.
package struct DatabaseInfo: Sendable, Equatable {
    package let name: String
    package let description: String
    /// Record types there are, and those of which a record can be made.
    package let recordTypes: [String]
    package let recordTypesForSubmit: [String]
}

/// A folder of the workspace with what is directly in it.
///
/// Source: the vendor's page "HCL Compass REST API queries and result sets".
package struct Folder: Sendable, Equatable {
    /// What each user has, and what all share: the roots of a workspace.
    package static let personalQueries = "Personal Queries"
    package static let publicQueries = "Public Queries"

    /// Something in a folder.
    package struct Item: Sendable, Equatable {
        package let id: String
        package let name: String
        /// `WORKSPACE_FOLDER`, `WORKSPACE_QUERY`, and what else there is (charts, reports).
        package let kind: String

        package var isFolder: Bool { kind == "WORKSPACE_FOLDER" }
        package var isQuery: Bool { kind == "WORKSPACE_QUERY" }
    }

    /// The `dbId`, a number as text.
    package let id: String
    package let name: String
    /// One level deep.
    package let items: [Item]
}
