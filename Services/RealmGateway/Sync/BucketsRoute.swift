import Access
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import ObjectStore
import Postgres

/// The routes of the PowerSync protocol: `POST /sync/stream`, `GET /write-checkpoint2.json` and
/// `POST /sync/checkpoint-request`.
///
/// Its clients have no other response to a failure than a delay, except 401, after which they request credentials. A
/// moved environment is therefore 401 here: the app's connector gets the new address from another route (421).
struct BucketsRoute: Sendable {
    private static let bodyBytesMax = 4_096
    /// Maximum number that a client may choose: the largest one that JavaScript represents exactly.
    private static let numberMax: Int64 = (1 << 53) - 1

    let authentication: Authentication
    let services: SyncServices

    @concurrent func stream(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await login(request, context)
        let limits = services.limits
        let body = try await JSONBody.read(request, bytesMax: limits.syncBodyBytesMax)
        let buckets = try BucketRequest(body, subscriptionCountMax: limits.syncRealmCountMax)
        let compresses = request.headers.acceptsGzip
        var response = try await SyncRoute.response(
            to: SyncRequest(buckets), login, services, channel: context.channel, compresses: compresses)
        response.headers[.vary] = "Accept-Encoding"
        if compresses { response.headers[.contentEncoding] = "gzip" }
        return response
    }

    /// Returns the next number of a client.
    @concurrent func writeCheckpoint(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await login(request, context)
        let client = try Self.client(request.uri.queryParameters["client_id"].map(String.init))
        let number = try await number(login.caller, client, atLeast: nil)
        return Response.json(bytes: Array("{\"data\":{\"write_checkpoint\":\"\(number)\"}}".utf8))
    }

    /// Records a number that the client chose.
    @concurrent func checkpointRequest(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await login(request, context)
        let body = try await JSONBody.read(request, bytesMax: Self.bodyBytesMax)
        guard let object = try? JSONObject(body) else { throw Problems.malformed("The body is not a JSON object.") }
        let client = try Self.client(object.text(of: "client_id"))
        let text =
            object.text(of: "checkpoint_request_id")
            ?? object.value(of: "checkpoint_request_id").map { String(decoding: $0, as: UTF8.self) }
        guard let requested = text.flatMap({ Int64($0) }), (1...Self.numberMax).contains(requested) else {
            throw Problems.malformed("'checkpoint_request_id' must be a whole number from 1 to \(Self.numberMax).")
        }
        let number = try await number(login.caller, client, atLeast: requested)
        return Response.json(bytes: Array("{\"data\":{\"checkpoint_request_id\":\"\(number)\"}}".utf8))
    }

    private func login(_ request: Request, _ context: EdgeContext) async throws -> Login {
        let login: Login
        do {
            login = try await authentication.login(request, context)
        } catch let problem as Problem where problem.status == .misdirectedRequest {
            throw Problems.tokenOfMovedEnvironment
        }
        guard login.caller.object != nil else { throw Problems.personOnly }
        return login
    }

    private static func client(_ text: String?) throws(Problem) -> UUID {
        guard let id = text.flatMap({ UUID(uuidString: $0) }) else {
            throw Problems.malformed("'client_id' must be a UUID.")
        }
        return id
    }

    private func number(_ caller: Caller, _ client: UUID, atLeast requested: Int64?) async throws -> Int64 {
        let (numbers, environment) = (services.numbers, caller.environment)
        let number = try await mappingDatabaseErrors {
            try await services.pool.run { connection in
                guard let sent = try SentRealm(of: caller, client: client, numbers, on: &connection) else {
                    throw Problems.personOnly
                }
                return try sent.assign(requested, in: environment, on: &connection)
            }
        }
        services.hub.committed(in: environment)
        return number
    }
}
