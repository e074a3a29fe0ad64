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
        let channel = context.channel
        let remaining = login.expires - Timestamp.now().secondsSinceEpoch
        let buffer = SendBuffer(bytesMax: limits.queueBytesMax, expiresIn: .seconds(max(remaining, 0))) {
            channel.close(promise: nil)
        }
        let session = try await mappingDatabaseErrors {
            try await SyncSession(services, login, request: sync, buffer: buffer)
        }
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody { writer in
                try await SyncStream(session: session).run(&writer)
                try await writer.finish(nil)
            })
    }
}
