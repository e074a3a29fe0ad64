import HTTPClient
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore

/// A demonstration page that simulates a device in the browser; disabled by default.
///
/// Its script calls the same routes as a device. The device API may be at another address: this service proxies it.
struct DevicePage: Sendable {
    /// The device API's base URL, without a trailing slash.
    let gateway: String
    let client: Client

    func addRoutes(to router: Router<EdgeContext>) {
        router.get("/device") { _, _ in file("text/html; charset=utf-8", PackageResources.page_html) }
        router.get("/device/page.js") { _, _ in file("text/javascript; charset=utf-8", PackageResources.page_js) }
        router.get("/device/page.css") { _, _ in file("text/css; charset=utf-8", PackageResources.page_css) }
        router.post("/device/sync") { request, _ in try await sync(request) }
    }

    private func file(_ type: String, _ bytes: [UInt8]) -> Response {
        let fields: HTTPFields = [
            .contentType: type, .cacheControl: "no-store",
            .contentSecurityPolicy: "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                + "form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
        ]
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// Proxies the device API's live stream.
    @concurrent private func sync(_ request: Hummingbird.Request) async throws -> Hummingbird.Response {
        let stream: StreamedResponse
        do {
            stream = try await client.stream(
                HTTPClient.Request(
                    "POST", gateway + "/v1/sync",
                    headers: [
                        ("Authorization", request.headers[.authorization] ?? ""), ("Content-Type", "application/json"),
                    ], body: Array(#"{"live":true}"#.utf8)), idleMax: .seconds(90))
        } catch {
            throw Problem(.badGateway, detail: "The device API is unavailable.")
        }
        return Response(
            status: .init(code: stream.status), headers: [.contentType: stream.headers["Content-Type"] ?? ""],
            body: ResponseBody { writer in
                for try await bytes in stream.body { try await writer.write(ByteBuffer(bytes: bytes)) }
                try await writer.finish(nil)
            })
    }
}
