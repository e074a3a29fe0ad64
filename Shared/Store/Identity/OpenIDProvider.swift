import Essentials
import FoundationEssentials
package import HTTPClient

/// A failed request to an identity provider.
package enum ProviderFailure: Error, Equatable, CustomStringConvertible {
    /// It is unreachable or returned 5xx; a retry may succeed.
    case unavailable(String)
    /// Its response violates OpenID Connect.
    case invalid(String)
    /// It rejected the request with an error code of RFC 6749 §5.2.
    case refused(code: String, description: String)

    package var description: String {
        switch self {
        case .unavailable(let reason): "the identity provider is unavailable: \(reason)"
        case .invalid(let reason): "the identity provider's response is not valid: \(reason)"
        case .refused(let code, let description): "the identity provider rejected the request: \(code) \(description)"
        }
    }
}

/// An identity provider's endpoints (OpenID Connect Discovery 1.0 §3).
package struct ProviderMetadata: Sendable, Equatable {
    package let issuer: String
    package let authorizationEndpoint: String
    package let tokenEndpoint: String
    package let jwksURL: String
    package let revocationEndpoint: String?
    /// Whether its authorization responses carry `iss` (RFC 9207): one without it is then rejected.
    package let namesIssuer: Bool
    /// Whether the client's secret goes into a header (the default of the standard) or into the form.
    package let takesBasic: Bool
}

/// The token response to a code or a refresh token.
package struct ProviderTokens: Sendable, Codable {
    package let idToken: String?
    package let accessToken: String
    package let refreshToken: String?

    private enum CodingKeys: String, CodingKey {
        case idToken = "id_token"
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }
}

/// The credentials of Fieldpost's OAuth client at a provider.
package struct ProviderClient: Sendable {
    package let id: String
    package let secret: String

    package init(id: String, secret: String) {
        self.id = id
        self.secret = secret
    }
}

/// A client of identity providers' discovery, token and revocation endpoints.
///
/// It follows no redirects; the size of each response is limited.
package struct OpenIDProvider: Sendable {
    private let client: Client
    private let callMax: Duration

    private static let responseBytesMax = 1 << 17

    package init(client: Client, callMax: Duration = .seconds(8)) {
        self.client = client
        self.callMax = callMax
    }

    /// Downloads a provider's configuration.
    ///
    /// - Parameter url: The location, if it is not below the issuer (§4).
    package func discover(_ issuer: String, at url: String? = nil) async throws(ProviderFailure) -> ProviderMetadata {
        let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        let response = try await send(
            Request(
                url ?? base + "/.well-known/openid-configuration", headers: [("Accept", "application/json")],
                connectMax: .seconds(3), totalMax: callMax, responseBytesMax: Self.responseBytesMax))
        guard response.status == 200 else { throw .unavailable("discovery returned status \(response.status)") }
        guard let document = try? JSONDecoder().decode(Discovery.self, from: Data(response.body)) else {
            throw .invalid("the discovery document cannot be decoded")
        }
        // §4.3: otherwise one provider could impersonate another.
        guard document.issuer == issuer else {
            throw .invalid("discovery names the issuer \(document.issuer), not \(issuer)")
        }
        for endpoint in [document.authorization_endpoint, document.token_endpoint, document.jwks_uri] {
            guard Self.isUsable(endpoint) else { throw .invalid("discovery names an endpoint that is not https") }
        }
        let methods = document.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]
        return ProviderMetadata(
            issuer: issuer, authorizationEndpoint: document.authorization_endpoint,
            tokenEndpoint: document.token_endpoint, jwksURL: document.jwks_uri,
            revocationEndpoint: document.revocation_endpoint.flatMap { Self.isUsable($0) ? $0 : nil },
            namesIssuer: document.authorization_response_iss_parameter_supported ?? false,
            takesBasic: methods.contains("client_secret_basic"))
    }

    /// Exchanges a code for tokens (RFC 6749 §4.1.3, RFC 7636 §4.5).
    package func exchange(
        _ code: String, verifier: String, redirect: String, as application: ProviderClient,
        at metadata: ProviderMetadata
    ) async throws(ProviderFailure) -> ProviderTokens {
        var fields = FormFields()
        fields.add("grant_type", "authorization_code")
        fields.add("code", code)
        fields.add("redirect_uri", redirect)
        fields.add("code_verifier", verifier)
        return try await tokens(for: fields, as: application, at: metadata)
    }

    /// Exchanges a refresh token for tokens (RFC 6749 §6). The response may hold a new refresh token, which replaces
    /// it.
    package func refresh(
        _ token: String, as application: ProviderClient, at metadata: ProviderMetadata
    ) async throws(ProviderFailure) -> ProviderTokens {
        var fields = FormFields()
        fields.add("grant_type", "refresh_token")
        fields.add("refresh_token", token)
        return try await tokens(for: fields, as: application, at: metadata)
    }

    private func tokens(
        for fields: FormFields, as application: ProviderClient, at metadata: ProviderMetadata
    ) async throws(ProviderFailure) -> ProviderTokens {
        let body = try await post(fields, to: metadata.tokenEndpoint, as: application, metadata)
        guard let tokens = try? JSONDecoder().decode(ProviderTokens.self, from: Data(body)) else {
            throw .invalid("the token response cannot be decoded")
        }
        return tokens
    }

    /// Revokes a refresh token (RFC 7009).
    ///
    /// - Throws: `.invalid` if the provider has no revocation endpoint: nothing is revoked then.
    package func revoke(
        _ token: String, as application: ProviderClient, at metadata: ProviderMetadata
    ) async throws(ProviderFailure) {
        guard let endpoint = metadata.revocationEndpoint else {
            throw .invalid("there is no revocation endpoint")
        }
        var fields = FormFields()
        fields.add("token", token)
        fields.add("token_type_hint", "refresh_token")
        _ = try await post(fields, to: endpoint, as: application, metadata)
    }

    private func post(
        _ fields: FormFields, to url: String, as application: ProviderClient, _ metadata: ProviderMetadata
    ) async throws(ProviderFailure) -> [UInt8] {
        var fields = fields
        var headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
        if metadata.takesBasic {
            // RFC 6749 §2.3.1: both are form-encoded before they are joined.
            let pair = FormFields.encode(application.id) + ":" + FormFields.encode(application.secret)
            headers.append(("Authorization", "Basic " + Data(pair.utf8).base64EncodedString()))
        } else {
            fields.add("client_id", application.id)
            fields.add("client_secret", application.secret)
        }
        let response = try await send(
            Request(
                "POST", url, headers: headers, body: Array(fields.encoded.utf8), connectMax: .seconds(3),
                totalMax: callMax, responseBytesMax: Self.responseBytesMax))
        switch response.status {
        case 200: return response.body
        case 400, 401, 403:
            let failure = try? JSONDecoder().decode(ErrorResponse.self, from: Data(response.body))
            if failure?.error == "server_error" || failure?.error == "temporarily_unavailable" {
                throw .unavailable("\(failure?.error ?? "")")
            }
            throw .refused(
                code: (failure?.error ?? "status \(response.status)").excerpt,
                description: (failure?.error_description ?? "").prefix(scalars: 200))
        default: throw .unavailable("the token endpoint returned status \(response.status)")
        }
    }

    private func send(_ request: Request) async throws(ProviderFailure) -> Response {
        do {
            return try await client.send(request)
        } catch {
            throw .unavailable(error.message)
        }
    }

    /// `https`, or `http` on this machine.
    package static func isUsable(_ url: String) -> Bool {
        guard let parts = URL(string: url), let host = parts.host, parts.user == nil, parts.fragment == nil else {
            return false
        }
        return parts.scheme == "https" || parts.scheme == "http" && ["127.0.0.1", "localhost", "::1"].contains(host)
    }

    private struct Discovery: Decodable {
        let issuer: String
        let authorization_endpoint: String
        let token_endpoint: String
        let jwks_uri: String
        let revocation_endpoint: String?
        let token_endpoint_auth_methods_supported: [String]?
        let authorization_response_iss_parameter_supported: Bool?
    }

    private struct ErrorResponse: Decodable {
        let error: String
        let error_description: String?
    }
}
