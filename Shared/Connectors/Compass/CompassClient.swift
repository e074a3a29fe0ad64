internal import BackendHTTP
package import BackendProtocol
internal import FoundationEssentials
package import HTTPClient

/// Speaks the REST API of HCL Compass (`/ccmweb/rest`) with one account.
///
/// The errors are those of time back ends (``BackendProtocol/BackendError``):
///
/// | Compass | error |
/// |---|---|
/// | looked at the request and says no: a rule of the record type, a missing permission, somebody else's commit | `refused`, in Compass's own words |
/// | was not reached, is overloaded, or answered a read with nonsense | `notProcessed` |
/// | may have done it: lost answer, 5xx, an answer to a write that cannot be read | `outcomeUnknown` |
/// | was not asked, because the `WriteDeadline` had passed | `tooLate` |
/// | does not accept the account | `unauthorized` |
///
/// It logs in by itself, once for all calls that need it, and once more when a token is refused (401); then no more.
/// Calls run concurrently, each ends within ``CompassSettings/callMax`` of its own (twice that, and a login, after a
/// refused token), and stops when its task is cancelled. TLS is always verified. No description, error or log has a
/// secret in it.
///
/// Sources: the vendor's pages on its REST API and the requests of its sample app. What neither says is in
/// ``CompassAssumptions``.
package struct CompassClient: Sendable {
    package let settings: CompassSettings
    let connection: CompassConnection

    /// - Parameter client: Serves any number of accounts.
    package init(_ settings: CompassSettings, as account: CompassAccount, client: Client) {
        self.settings = settings
        connection = CompassConnection(settings, account, client)
    }

    // MARK: Server and account

    /// The repositories of the server, which it tells everybody.
    package func repositories(withDatabases: Bool = false) async throws(BackendError) -> [Repository] {
        let path = "/repos" + (withDatabases ? "?getDbs=true" : "")
        let response = try await connection.readOpenly(path)
        return try HTTPAnswer.decode([ListedElement<RepositoryBody>].self, from: response.body).compactMap(\.row).map {
            Repository(name: $0.name, databases: $0.databaseNames ?? [])
        }
    }

    /// Sees whether the account is let in. Other calls log in by themselves.
    package func logIn() async throws(BackendError) { try await connection.logIn() }

    /// Gives the token back. It is forgotten here whatever the server answers.
    package func logOff() async throws(BackendError) { try await connection.logOff() }

    /// What the database says of itself.
    package func database() async throws(BackendError) -> DatabaseInfo {
        let response = try await connection.read("")
        try CompassAnswer.check(response, isWrite: false, connection.account)
        let body = try HTTPAnswer.decode(DatabaseBody.self, from: response.body)
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
