/// A repository with its databases.
///
/// Source: `GET /repos?getDbs=true`.
package struct Repository: Sendable, Equatable {
    package let name: String
    /// Empty unless requested.
    package let databases: [String]
}

/// The description of a database.
///
/// Source: the vendor's page "Records and record types", `GET /repos/{repo}/databases/{db}`.
package struct DatabaseInfo: Sendable, Equatable {
    package let name: String
    package let description: String
    /// All record types, and those that records can be created of.
    package let recordTypes: [String]
    package let recordTypesForSubmit: [String]
}

/// A folder of the workspace with its direct content.
///
/// Source: the vendor's page "HCL Compass REST API queries and result sets".
package struct Folder: Sendable, Equatable {
    /// The roots of a workspace: the queries of the user, and the shared ones.
    package static let personalQueries = "Personal Queries"
    package static let publicQueries = "Public Queries"

    /// An element of a folder.
    package struct Item: Sendable, Equatable {
        package let id: String
        package let name: String
        /// `WORKSPACE_FOLDER`, `WORKSPACE_QUERY` or another kind (charts, reports).
        package let kind: String

        package var isFolder: Bool { kind == "WORKSPACE_FOLDER" }
        package var isQuery: Bool { kind == "WORKSPACE_QUERY" }
    }

    /// The `dbId`, a number as text.
    package let id: String
    package let name: String
    /// The direct content of the folder.
    package let items: [Item]
}
