import HTTPTypes
import Hummingbird
package import ServiceSettings

/// Configuration of a public endpoint: TLS, CORS and security headers.
package struct HTTPEdge: Sendable {
    /// Paths of PEM files with the certificate chain and its private key. Without them, TLS terminates at a proxy.
    package struct TLSFiles: Sendable {
        package var certificate: String
        package var key: String
        /// Time between two polls of the files, see ``ServerCertificate``.
        var pollInterval = Duration.seconds(5)

        package init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }

        /// - Returns: `nil` if neither file is configured.
        package init?(_ configuration: Configuration) throws(ConfigurationError) {
            let certificate = try configuration.optionalText(.tlsCertificate)
            let key = try configuration.optionalText(.tlsKey)
            switch (certificate, key) {
            case (let certificate?, let key?): self.init(certificate: certificate, key: key)
            case (nil, nil): return nil
            default: throw ConfigurationError("tls.certificate and tls.key must be set together")
            }
        }
    }

    package var tls: TLSFiles?
    /// The origins whose pages may send requests, exactly as in the `Origin` header.
    package var origins: [String]

    package init(tls: TLSFiles? = nil, origins: [String] = []) {
        self.tls = tls
        self.origins = origins
    }

    package init(_ configuration: Configuration) throws(ConfigurationError) {
        tls = try TLSFiles(configuration)
        origins = try configuration.list(.corsOrigins)
        for origin in origins {
            let rest = origin.split(separator: "://", maxSplits: 1)
            guard rest.count == 2, rest[0] == "https" || rest[0] == "http", !rest[1].contains("/") else {
                throw ConfigurationError("cors.origins: '\(origin)' is not an origin such as https://app.example.com")
            }
        }
    }

    /// Security headers of all responses. A page with its own content security policy keeps it.
    var fields: HTTPFields {
        var fields: HTTPFields = [
            .xContentTypeOptions: "nosniff", .cacheControl: "no-store",
            .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
        ]
        if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
        if tls != nil { fields[.strictTransportSecurity] = "max-age=31536000" }
        return fields
    }
}

/// Implements CORS.
struct EdgeMiddleware<Context: RequestContext>: RouterMiddleware {
    let edge: HTTPEdge

    @concurrent func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let origin = request.headers[.origin].flatMap { edge.origins.contains($0) ? $0 : nil }
        let isPreflight = request.method == .options && request.headers[.accessControlRequestMethod] != nil
        var response: Response
        if isPreflight, origin != nil {
            response = Response(
                status: .noContent,
                headers: [
                    .accessControlAllowMethods: "GET, POST, PUT, DELETE",
                    .accessControlAllowHeaders: "authorization, content-type, if-none-match, traceparent, x-user-agent",
                    .accessControlMaxAge: "600",
                ])
        } else {
            response = try await next(request, context)
        }
        if let origin {
            response.headers[.accessControlAllowOrigin] = origin
            response.headers[.accessControlExposeHeaders] = "date, etag, retry-after, www-authenticate"
        }
        // A shared cache must not serve one origin's response to another.
        if !edge.origins.isEmpty { response.headers[.vary] = "Origin" }
        return response
    }
}
