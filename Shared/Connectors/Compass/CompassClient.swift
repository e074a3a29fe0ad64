internal import BackendHTTP
package import BackendProtocol
internal import FoundationEssentials
package import HTTPClient

/// A client of the REST API of HCL Compass (`/ccmweb/rest`) for one account.
///
/// Errors are those of time back ends (``BackendProtocol/BackendError``):
///
/// | Compass | error |
/// |---|---|
/// | refused the request: a rule of the record type, a missing permission, a concurrent commit | `refused`, with Compass's own message |
/// | is unreachable or overloaded, or returned an unreadable response to a read | `notProcessed` |
/// | may have processed the request: lost response, 5xx, unreadable response to a write | `outcomeUnknown` |
/// | was not called, because the `WriteDeadline` had passed | `deadlineExceeded` |
/// | rejects the account | `unauthorized` |
///
/// The client logs in when needed, once for all concurrent calls, and a second time if a token is rejected (401). Calls
/// run concurrently. Each ends within ``CompassSettings/callMax`` (twice that and a login, after a rejected token), and
/// when its task is cancelled. TLS is always verified. Descriptions, errors and logs contain no secrets.
///
/// Sources: the vendor's pages on its REST API, and the requests of its sample app. Undocumented properties are listed
/// in ``CompassAssumptions``.
package struct CompassClient: Sendable {
    package let settings: CompassSettings
    let connection: CompassConnection

    /// - Parameter client: An HTTP client, which several accounts may share.
    package init(_ settings: CompassSettings, as account: CompassAccount, client: Client) {
        self.settings = settings
        connection = CompassConnection(settings, account, client)
    }

    // MARK: Server and account

    /// Returns the repositories of the server, for which no login is needed.
    package func repositories(withDatabases: Bool = false) async throws(BackendError) -> [Repository] {
        let path = "/repos" + (withDatabases ? "?getDbs=true" : "")
        let response = try await connection.readWithoutLogin(path)
        return try BackendResponse.decode([ListedElement<RepositoryBody>].self, from: response.body).compactMap(\.row)
            .map {
                Repository(name: $0.name, databases: $0.databaseNames ?? [])
            }
    }

    /// Verifies that the account can log in. Other calls log in when needed.
    package func logIn() async throws(BackendError) { try await connection.logIn() }

    /// Ends the login. The token is discarded here even if the request fails.
    package func logOff() async throws(BackendError) { try await connection.logOff() }

    /// Returns the description of the database.
    package func database() async throws(BackendError) -> DatabaseInfo {
        let response = try await connection.read("")
        try CompassResponse.check(response, isWrite: false, connection.account)
        let body = try BackendResponse.decode(DatabaseBody.self, from: response.body)
        return DatabaseInfo(
            name: body.name, description: body.description ?? "", recordTypes: body.entityDefNames ?? [],
            recordTypesForSubmit: body.entityDefNamesForSubmit ?? [])
    }
}

private struct RepositoryBody: ListedRow {
    static let idMembers = ["name"]

    let name: String
    let databaseNames: [String]?
}

private struct DatabaseBody: Decodable {
    let name: String
    let description: String?
    let entityDefNames: [String]?
    let entityDefNamesForSubmit: [String]?
}
