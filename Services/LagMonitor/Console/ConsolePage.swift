import Crypto
import Essentials
import HTTPTypes
import Hummingbird
import NIOCore

/// The static files of the page. They contain no data of the installation, which is loaded through the API.
enum ConsolePage {
    /// A file embedded in the executable.
    struct File: Sendable {
        let path: RouterPath
        let type: String
        let bytes: ByteBuffer
        /// The entity tag, derived from the content.
        let tag: String

        init(_ path: RouterPath, _ type: String, _ bytes: [UInt8]) {
            (self.path, self.type, self.bytes) = (path, type, ByteBuffer(bytes: bytes))
            tag = "\"\(Base64URL.text(Array(SHA256.hash(data: bytes)).prefix(12)))\""
        }
    }

    /// Only own resources; no inline code, no frames, no form targets.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        + "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

    static let files = [
        File("/", "text/html; charset=utf-8", PackageResources.index_html),
        File("/console.css", "text/css; charset=utf-8", PackageResources.console_css),
        File("/console.js", "text/javascript; charset=utf-8", PackageResources.console_js),
        File("/views.js", "text/javascript; charset=utf-8", PackageResources.views_js),
        File("/icon.svg", "image/svg+xml", PackageResources.icon_svg),
    ]

    static func response(_ file: File, to request: Request) -> Response {
        var fields: HTTPFields = [
            .contentType: file.type, .contentSecurityPolicy: policy, .cacheControl: "no-cache", .eTag: file.tag,
        ]
        if let name = HTTPField.Name("Cross-Origin-Opener-Policy") { fields[name] = "same-origin" }
        if request.headers[.ifNoneMatch] == file.tag { return Response(status: .notModified, headers: fields) }
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: file.bytes))
    }

    /// Returns a page with one sentence.
    static func notice(_ status: HTTPResponse.Status, _ text: String) -> Response {
        let html = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>Fieldpost console</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <link rel="stylesheet" href="/console.css"></head>
            <body><main class="notice"><h1>Fieldpost console</h1><p id="problem">\(HTMLText(text))</p>
            <p><a class="button" href="/">Open the console</a></p></main></body></html>

            """
        return Response(
            status: status,
            headers: [
                .contentType: "text/html; charset=utf-8", .contentSecurityPolicy: policy, .cacheControl: "no-store",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: html)))
    }
}
