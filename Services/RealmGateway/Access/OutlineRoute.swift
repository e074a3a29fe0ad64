import Access
import HTTPServer
import Hummingbird
import Postgres
import Tenants

/// `GET /v1/outline`: the outline of the map in apps, which an administrator uploads.
struct OutlineRoute: Sendable {
    let authentication: Authentication
    let pool: Pool

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let environment = try await authentication.login(request, context).caller.environment
        let outline = try await mappingDatabaseErrors {
            try await pool.run { connection -> (tag: String, content: String?)? in
                guard let digest = try OutlineStore.digest(of: environment, on: &connection) else { return nil }
                let tag = EntityTag.text(digest.bytes)
                if request.holds(tag) { return (tag, nil) }
                return try OutlineStore.load(environment, on: &connection).map {
                    (EntityTag.text($0.digest.bytes), $0.content)
                }
            }
        }
        guard let outline else { throw Problems.outlineUnknown }
        return .tagged(outline.tag, outline.content, type: "application/geo+json")
    }
}
