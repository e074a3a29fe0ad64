/// The address, database and limits of a Compass server.
package struct CompassSettings: Sendable, Equatable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://compass.example.com:8190`.
    package var serverURL: String
    /// The schema repository (`GET /repos` lists them), such as `CCMRepo`.
    package var repository: String
    /// The user database in the repository, such as `SAMPL`.
    package var database: String
    /// The record type of defects, as in paths and query definitions.
    package var recordType = "Defect"
    package var connectMax: Duration = .seconds(5)
    /// Timeout of a single HTTP call.
    package var callMax: Duration = .seconds(30)
    /// Rows per page of a result set.
    package var pageRowsMax = 500
    /// Maximum number of pages of a result set; a longer one fails instead of being truncated.
    package var pagesMax = 1_000
    /// Maximum characters of a field's text in a result set; a single record has the full text.
    package var multiLineTextLengthMax = 4_000
    /// Whether a rejected account is not tried again, because a server may lock an account after several attempts. A
    /// personal access token is then tried once separately, before any other call.
    package var isRefusalFinal = false

    package init(serverURL: String, repository: String, database: String) {
        self.serverURL = serverURL.hasSuffix("/") ? String(serverURL.dropLast()) : serverURL
        self.repository = repository
        self.database = database
    }

    package var description: String { "HCL Compass at \(serverURL), \(repository)/\(database), \(recordType)" }
}

/// The account of a client. Its description has no secret.
package enum CompassAccount: Sendable, Equatable, CustomStringConvertible {
    /// Logs in, and sends the resulting token (`Bearer`).
    case password(user: String, password: String)
    /// A personal access token, as issued by the vendor's newer servers: sent with every call (`Basic`), without a
    /// login.
    case personalAccessToken(String)

    package var description: String {
        switch self {
        case .password(let user, _): "user \(user)"
        case .personalAccessToken: "a personal access token"
        }
    }
}
