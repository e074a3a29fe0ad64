import Access
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Model
import ObjectStore
import Postgres

/// `GET /v1/realms`.
struct RealmsRoute: Sendable {
    let authentication: Authentication
    let pool: Pool
    let numbers: RealmNumbers
    let kinds: KindDirectory

    /// Maximum numbers of realms per response to an integration, and of teams per response to a manager.
    private static let countMax: Int64 = 1_000

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let caller = try await authentication.login(request, context).caller
        let after = try Self.after(request)
        // Declarations that a newer program applied, and this one cannot read, grant nothing.
        let catalogue = (try? await kinds.current(in: caller.environment)) ?? .unloaded
        return try await mappingDatabaseErrors {
            try await pool.run { [numbers] connection in
                let access = try AccessReader(caller, numbers, on: &connection)
                let state = try access.read(on: &connection)
                guard !state.isRemoved else { throw Problems.keyUnknown }
                return Response.json(
                    bytes: try Self.list(caller, state, access, catalogue, after: after, on: &connection))
            }
        }
    }

    private static func after(_ request: Request) throws -> RealmPath? {
        guard let text = request.uri.queryParameters["after"] else { return nil }
        guard let path = RealmPath(String(text)) else { throw Problems.malformed("'after' is not a realm's path.") }
        return path
    }

    /// Returns the response body.
    private static func list(
        _ caller: Caller, _ state: AccessState, _ access: AccessReader, _ catalogue: KindCatalogue, after: RealmPath?,
        on connection: inout Connection
    ) throws -> [UInt8] {
        var paths = state.unasked
        var next: RealmPath?
        let environment = caller.environment.rawValue
        if caller.object == nil {
            let rows = try connection.run(
                """
                SELECT path FROM realm.realm
                WHERE environment_id = \(environment) AND path > \(after?.description ?? "")
                ORDER BY path LIMIT \(countMax)
                """)
            paths = try rows.decode(String.self).compactMap { RealmPath($0) }
            if rows.count == countMax { next = paths.last }
            paths = paths.filter(state.mayRead)
        } else if state.mayRead(.manager) {
            let results = try connection.run([
                """
                SELECT id FROM store.object WHERE environment_id = \(environment) AND realm_id = \(access.common)
                    AND kind = \(Kind.team) AND NOT deleted ORDER BY id LIMIT \(countMax)
                """,
                """
                SELECT FROM realm.realm
                WHERE environment_id = \(environment) AND path = \(RealmPath.archive.description)
                """,
            ])
            if results[1].count > 0 { paths.append(.archive) }
            let teams = try results[0].decode(UUID.self).map { RealmPath.team($0) }
            let listed = Set(paths)
            paths += teams.filter { !listed.contains($0) }
        }
        let realms = paths.map { path in
            let mayWrite = Permissions.mayWrite(path.realmClass, state.access(to: path), kinds: catalogue.all)
            let permissions = JSONText.array(of: (mayWrite ? ["read", "write"] : ["read"]).map { JSONText.string($0) })
            return JSONObject.bytes(of: [
                ("realm", JSONText.string(path.description)[...]), ("permissions", permissions[...]),
            ])
        }
        let optional = [("person", caller.object?.text), ("next", next?.description)].compactMap { name, text in
            text.map { (key: name, value: JSONText.string($0)[...]) }
        }
        return JSONObject.bytes(of: [(key: "realms", value: JSONText.array(of: realms)[...])] + optional)
    }
}
