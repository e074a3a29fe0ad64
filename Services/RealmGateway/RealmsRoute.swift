import Hummingbird
import Model
import NIOCore
import Postgres
import Realms
import Runtime

/// `GET /v1/realms`.
struct RealmsRoute: Sendable {
    let authentication: Authentication
    let pool: Pool
    let numbers: RealmNumbers

    @concurrent func handle(_ request: Request) async throws -> Response {
        let person = try await authentication.caller(request.headers).person
        let catalogue = try await answering {
            try await pool.run { [numbers] connection in
                let own = try numbers.number(of: person.realm, in: person.environment, on: &connection)
                let rows = try connection.run(RealmObject.load(kinds: [.user], realm: own, in: person.environment))
                let user = rows.count > 0 ? try RealmObject(rows[0]) : nil
                return (user?.fields?.bytes).flatMap(Permissions.catalogue(inUser:))
            }
        }
        let realms = Permissions.grants(own: person.realm, catalogue: catalogue).map { grant in
            "{\"realm\":\"\(grant.realm)\",\"permissions\":[\"read\"\(grant.mayWrite ? ",\"write\"" : "")]}"
        }
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: "{\"realms\":[\(realms.joined(separator: ","))]}")))
    }
}
