/// Where a Compass server is, what of it is used, and how much of it at a time.
package struct CompassSettings: Sendable, Equatable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://compass.example.com:8190`.
    package var serverURL: String
    /// The schema repository (`GET /repos` lists them), for one `CCMRepo`.
    package var repository: String
    /// The user database in it, for one `SAMPL`.
    package var database: String
    /// The record type that defects are of, as paths and query definitions name it.
    package var recordType = "Defect"
    package var connectMax: Duration = .seconds(5)
    /// The longest a single HTTP call may take.
    package var callMax: Duration = .seconds(30)
    /// Rows of a result set's page that are asked for.
    package var pageRowsMax = 500
    /// Pages of one result set; one that fills them all fails rather than being cut.
    package var pagesMax = 1_000
    /// Characters of a field's text that a result set brings; a single record brings all of them.
    package var multiLineTextLengthMax = 4_000
    /// A client whose account was refused does not try it again: a server may lock an account after some tries. A
    /// personal access token is tried once by itself, before any other call.
    package var isRefusalFinal = false

    package init(serverURL: String, repository: String, database: String) {
        self.serverURL = serverURL.hasSuffix("/") ? String(serverURL.dropLast()) : serverURL
        self.repository = repository
        self.database = database
    }

    package var description: String { "HCL Compass at \(serverURL), \(repository)/\(database), \(recordType)" }
}

/// As whom Compass is called. It is never printed with its secret.
package enum CompassAccount: Sendable, Equatable, CustomStringConvertible {
    /// Logs in, and calls with the token it gets (`Bearer`).
    case password(user: String, password: String)
    /// A personal access token, as the vendor's newer servers give them: it is sent with every call (`Basic`), and
    /// there is nothing to log in to.
    case personalAccessToken(String)

    package var description: String {
        switch self {
        case .password(let user, _): "user \(user)"
        case .personalAccessToken: "a personal access token"
        }
    }
}
