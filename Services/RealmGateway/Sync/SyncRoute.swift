import Access
import Essentials
import HTTPServer
import Hummingbird
import NIOCore
import ObjectStore

/// `POST /v1/sync`.
struct SyncRoute: Sendable {
    let authentication: Authentication
    let services: SyncServices

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await authentication.login(request, context)
        let body = try await JSONBody.read(request, bytesMax: services.limits.syncBodyBytesMax)
        let sync = try await parse(body, of: login)
        guard sync.all == nil || login.caller.object == nil else { throw Problems.integrationOnly }
        return try await Self.response(to: sync, login, services, channel: context.channel)
    }

    private func parse(_ body: [UInt8], of login: Login) async throws -> SyncRequest {
        let countMax = services.limits.syncRealmCountMax
        let parsed = Result { () throws(Problem) in try SyncRequest(body, realmCountMax: countMax) }
        if case .success(let request) = parsed { return request }
        guard login.caller.object == nil else { return try parsed.get() }
        // It may name kinds that the environment declares.
        let catalogue = try await services.kinds.current(in: login.caller.environment)
        return try SyncRequest(body, realmCountMax: countMax, catalogue: catalogue)
    }

    /// Opens a session and returns its stream.
    static func response(
        to sync: SyncRequest, _ login: Login, _ services: SyncServices, channel: any Channel, compresses: Bool = false
    ) async throws -> Response {
        let remaining = login.expires - Timestamp.now().secondsSinceEpoch
        let buffer = SendBuffer(bytesMax: services.limits.queueBytesMax, expiresIn: .seconds(max(remaining, 0))) {
            channel.close(promise: nil)
        }
        let session = try await mappingDatabaseErrors {
            try await SyncSession(services, login, request: sync, buffer: buffer)
        }
        let keepaliveMax = services.limits.keepaliveMax
        let stream = SyncStream(
            session: session,
            keepaliveMax: sync.buckets == nil ? keepaliveMax : min(keepaliveMax, BucketLines.keepaliveMax))
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody { base in
                var writer: any ResponseBodyWriter = compresses ? GzipWriter(base) : base
                try await stream.run(&writer)
                try await writer.finish(nil)
            })
    }
}
