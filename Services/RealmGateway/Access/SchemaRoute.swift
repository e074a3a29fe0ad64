import Access
import Essentials
import HTTPServer
import Hummingbird
import Model
import ObjectStore
import Postgres

/// `GET /v1/schema`: the kinds that the caller's environment declares.
struct SchemaRoute: Sendable {
    let authentication: Authentication
    let pool: Pool

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let environment = try await authentication.login(request, context).caller.environment
        let (tag, content) = try await mappingDatabaseErrors {
            try await pool.run { connection in
                let head = try KindVersion.head(in: environment, on: &connection)
                let tag = EntityTag.text(head.digest.bytes + "\(head.version)".utf8)
                if request.holds(tag) { return (tag, String?.none) }
                let stored = try KindVersion.load(head.version, in: environment, on: &connection)
                return (tag, try Self.content(stored))
            }
        }
        return .tagged(tag, content, type: "application/json")
    }

    /// Returns the version's number and the declarations.
    private static func content(_ stored: KindVersion?) throws -> String {
        let kinds = try stored.flatMap { stored in
            try JSONObject(Array(stored.content.utf8)).value(of: "kinds").map { String(decoding: $0, as: UTF8.self) }
        }
        return "{\"version\":\(stored?.version ?? 0),\"kinds\":\(kinds ?? "{}")}"
    }
}
