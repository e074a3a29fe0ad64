internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// Folders and queries.
extension CompassClient {
    /// Maximum number of names of a path to a folder.
    package static let pathDepthMax = 32
    /// Maximum number of queries that one call of ``removeStrayQueries(in:madeBefore:)`` removes.
    package static let strayQueriesMax = 100

    /// Returns the roots of the workspace, such as ``Folder/personalQueries``.
    package func folders() async throws(BackendError) -> [Folder] {
        let response = try await connection.read("/workspace/folders")
        try CompassResponse.check(response, isWrite: false, connection.account)
        return try BackendResponse.decode([ListedElement<FolderBody>].self, from: response.body)
            .compactMap(\.row).map(\.folder)
    }

    /// Returns a folder; `nil` if it does not exist.
    package func folder(_ id: String) async throws(BackendError) -> Folder? {
        guard
            let response = try await connection.readIfPresent("/workspace/folders/\(try CompassConnection.segment(id))")
        else {
            return nil
        }
        return try BackendResponse.decode(FolderBody.self, from: response.body).folder
    }

    /// Returns the folder at a path such as `["Personal Queries", "Fieldpost"]`, with one call for the roots and one
    /// for each further name; `nil` if it does not exist.
    package func folder(at path: [String]) async throws(BackendError) -> Folder? {
        guard let first = path.first, path.count <= Self.pathDepthMax else { return nil }
        var folder = try await folders().first { $0.name == first }
        for name in path.dropFirst() {
            guard let item = folder?.items.first(where: { $0.isFolder && $0.name == name }) else { return nil }
            folder = try await self.folder(item.id)
        }
        return folder
    }

    /// Returns the queries of a folder; `nil` if the folder does not exist.
    package func queries(inFolder id: String) async throws(BackendError) -> [Folder.Item]? {
        let path = "/workspace/folders/\(try CompassConnection.segment(id))/queryDefs"
        guard let response = try await connection.readIfPresent(path) else { return nil }
        return try BackendResponse.decode([ListedElement<ItemBody>].self, from: response.body)
            .compactMap(\.row).map { $0.item(ofKind: "WORKSPACE_QUERY") }
    }

    /// Creates a query.
    ///
    /// - Returns: The query with its id, and with its columns in the order of a row's values.
    /// - Throws: `refused`, for example if the folder has a query with the same name. If the created columns differ
    ///   from the requested ones, the query is deleted and `notProcessed` is thrown.
    package func create(_ query: QueryDefinition) async throws(BackendError) -> QueryDefinition {
        let response = try await connection.write("POST", "/workspace/queryDefs", try QueryBody(query).json())
        try CompassResponse.check(response, isWrite: true, connection.account)
        guard let body = BackendResponse.decoded(QueryBody.self, from: response.body), let id = body.dbId?.text
        else { throw .outcomeUnknown(reason: "HTTP \(response.status) without the dbId of a query") }
        var created = query
        created.id = id
        guard let columns = body.columns else { return created }
        guard columns.map(\.field).sorted() == query.columns.map(\.field).sorted() else {
            try await deleteQuery(id)
            throw .notProcessed(
                reason: BackendMessage.truncated("a query was created with the columns \(columns.map(\.field))"),
                retryAfter: nil)
        }
        created.columns = columns
        return created
    }

    /// Returns a query; `nil` if it does not exist.
    package func query(_ id: String) async throws(BackendError) -> QueryDefinition? {
        guard let response = try await connection.readIfPresent(try queryPath(id)) else { return nil }
        return try BackendResponse.decode(QueryBody.self, from: response.body).definition(id)
    }

    /// Returns a query with its id and columns only, to run it; `nil` if it does not exist.
    ///
    /// A query of a person may have a filter that ``QueryFilter`` does not represent.
    package func queryToRun(_ id: String) async throws(BackendError) -> QueryDefinition? {
        guard let response = try await connection.readIfPresent(try queryPath(id)) else { return nil }
        return try BackendResponse.decode(ColumnsBody.self, from: response.body).definition(id)
    }

    private func queryPath(_ id: String) throws(BackendError) -> String {
        "/workspace/queryDefs/\(try CompassConnection.segment(id))"
    }

    /// Deletes a query. Succeeds if it does not exist.
    package func deleteQuery(_ id: String) async throws(BackendError) {
        let response = try await connection.write("DELETE", try queryPath(id))
        if CompassResponse.isAbsent(response) { return }
        try CompassResponse.check(response, isWrite: true, connection.account)
    }

    /// Deletes unused ``TemporaryQuery``s that were created before a time, at most ``strayQueriesMax``.
    ///
    /// - Parameter folder: The folder as just read.
    /// - Returns: The number of deleted queries.
    package func removeStrayQueries(in folder: Folder, madeBefore time: Timestamp) async throws(BackendError) -> Int {
        let stray = folder.items.filter { item in
            item.isQuery && TemporaryQuery.madeAt(item.name).map { $0 < time } ?? false
        }.prefix(Self.strayQueriesMax)
        for item in stray { try await deleteQuery(item.id) }
        return stray.count
    }
}
