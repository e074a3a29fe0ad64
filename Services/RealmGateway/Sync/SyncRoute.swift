import Access
import Essentials
import HTTPServer
import Hummingbird
import NIOCore

/// `POST /v1/sync`.
struct SyncRoute: Sendable {
    let authentication: Authentication
    let services: SyncServices

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await authentication.login(request, context)
        let limits = services.limits
        let body = try await JSONBody.read(request, bytesMax: limits.syncBodyBytesMax)
        let sync = try SyncRequest(body, realmCountMax: limits.syncRealmCountMax)
        guard sync.all == nil || login.caller.object == nil else { throw Problems.integrationOnly }
        return try await Self.response(to: sync, login, services, channel: context.channel)
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
