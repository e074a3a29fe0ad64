internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// Folders and queries.
extension CompassClient {
    /// Names of a path to a folder.
    package static let pathDepthMax = 32
    /// Left-over queries that one call removes.
    package static let strayQueriesMax = 100

    /// The roots of the workspace, for one ``Folder/personalQueries``.
    package func folders() async throws(BackendError) -> [Folder] {
        let response = try await connection.read("/workspace/folders")
        try CompassAnswer.check(response, isWrite: false, connection.account)
        return try HTTPAnswer.decode([ListedElement<FolderBody>].self, from: response.body)
            .compactMap(\.row).map(\.folder)
    }

    /// A folder; `nil` when there is none with this id.
    package func folder(_ id: String) async throws(BackendError) -> Folder? {
        guard let response = try await connection.readIfThere("/workspace/folders/\(try CompassConnection.segment(id))")
        else {
            return nil
        }
        return try HTTPAnswer.decode(FolderBody.self, from: response.body).folder
    }

    /// The folder at a path, `["Personal Queries", "Fieldpost"]`: one call for the roots, and one for each further
    /// name. `nil` when a name is not there.
    package func folder(at path: [String]) async throws(BackendError) -> Folder? {
        guard let first = path.first, path.count <= Self.pathDepthMax else { return nil }
        var folder = try await folders().first { $0.name == first }
        for name in path.dropFirst() {
            guard let item = folder?.items.first(where: { $0.isFolder && $0.name == name }) else { return nil }
            folder = try await self.folder(item.id)
        }
        return folder
    }

    /// The queries of a folder, as items; `nil` when there is no such folder.
    package func queries(inFolder id: String) async throws(BackendError) -> [Folder.Item]? {
        let path = "/workspace/folders/\(try CompassConnection.segment(id))/queryDefs"
        guard let response = try await connection.readIfThere(path) else { return nil }
        return try HTTPAnswer.decode([ListedElement<ItemBody>].self, from: response.body)
            .compactMap(\.row).map { $0.item(ofKind: "WORKSPACE_QUERY") }
    }

    /// Makes a query.
    ///
    /// - Returns: The query with its id, and with its columns in the order in which rows have them.
    /// - Throws: `refused`, for one where the folder has another query of this name. When the columns that were made
    ///   are not those that were asked for, the query is removed again.
    package func create(_ query: QueryDefinition) async throws(BackendError) -> QueryDefinition {
        let response = try await connection.write("POST", "/workspace/queryDefs", try QueryBody(query).json())
        try CompassAnswer.check(response, isWrite: true, connection.account)
        guard let body = HTTPAnswer.decoded(QueryBody.self, from: response.body), let id = body.dbId?.text
        else { throw .outcomeUnknown(reason: "HTTP \(response.status) without the dbId of a query") }
        var made = query
        made.id = id
        guard let columns = body.columns else { return made }
        guard columns.map(\.field).sorted() == query.columns.map(\.field).sorted() else {
            try await deleteQuery(id)
            throw .notProcessed(
                reason: BackendMessage.bounded("a query was made of the columns \(columns.map(\.field))"),
                retryAfter: nil)
        }
        made.columns = columns
        return made
    }

    /// A query; `nil` when there is none with this id.
    package func query(_ id: String) async throws(BackendError) -> QueryDefinition? {
        guard
            let response = try await connection.readIfThere("/workspace/queryDefs/\(try CompassConnection.segment(id))")
        else {
            return nil
        }
        return try HTTPAnswer.decode(QueryBody.self, from: response.body).definition(id)
    }

    /// Removes a query. One that is not there counts as removed.
    package func deleteQuery(_ id: String) async throws(BackendError) {
        let response = try await connection.write("DELETE", "/workspace/queryDefs/\(try CompassConnection.segment(id))")
        if CompassAnswer.isAbsent(response) { return }
        try CompassAnswer.check(response, isWrite: true, connection.account)
    }

    /// Removes ``TemporaryQuery``s that were made before a time, which nobody uses any more: at most
    /// ``strayQueriesMax`` of them.
    ///
    /// - Parameter folder: As it was read just now.
    /// - Returns: How many were removed.
    package func removeStrayQueries(in folder: Folder, madeBefore time: Timestamp) async throws(BackendError) -> Int {
        let stray = folder.items.filter { item in
            item.isQuery && TemporaryQuery.madeAt(item.name).map { $0 < time } ?? false
        }.prefix(Self.strayQueriesMax)
        for item in stray { try await deleteQuery(item.id) }
        return stray.count
    }
}
