import Essentials
import FoundationEssentials
import Tenants

/// The parts of a token, not yet verified.
struct TokenParts {
    struct Header: Decodable {
        let alg: String
        let kid: String?
        /// Extensions that must be understood (RFC 7515 §4.1.11); none are.
        let crit: [String]?
    }

    let header: Header
    let claims: TokenClaims
    let signed: ArraySlice<UInt8>
    let signature: [UInt8]

    /// - Throws: `TokenError.malformed`.
    init(_ token: [UInt8]) throws(TokenError) {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .malformed("not three parts") }
        guard let header = Self.decode(Header.self, parts[0]) else { throw .malformed("header") }
        guard header.crit == nil else { throw .malformed("critical extensions") }
        guard let claims = Self.decode(TokenClaims.self, parts[1]) else { throw .malformed("claims") }
        guard let signature = Base64URL.bytes(parts[2]) else { throw .malformed("signature") }
        self.header = header
        self.claims = claims
        self.signed = token[..<(parts[2].startIndex - 1)]
        self.signature = signature
    }

    static func decode<T: Decodable>(_ type: T.Type, _ part: ArraySlice<UInt8>) -> T? {
        Base64URL.bytes(part).flatMap { try? JSONDecoder().decode(type, from: Data($0)) }
    }
}

/// The claims this API reads (RFC 7519 §4.1, OpenID Connect Core 1.0 §5.1).
struct TokenClaims: Decodable {
    let iss: String
    let sub: String
    let aud: [String]
    let exp: Double
    let nbf: Double?
    let iat: Double?
    let email: String?
    let nonce: String?
    let authorizedParty: String?
    /// `email_verified`; some providers send a string instead of a Boolean.
    let isEmailVerified: Bool?
    /// `xms_edov` of Microsoft Entra ID: true, 1, "1" or "true".
    let isDomainVerified: Bool?
    /// Claims of Microsoft Entra ID: the tenant (`tid`), the login name, the account's identity provider (`idp`), and
    /// whether it is a guest (`acct`). A claim that is present but malformed matches no tenant.
    let tenantID: String?
    let preferredUsername: String?
    let identityProvider: String?
    let isGuest: Bool
    let name: String?
    /// The client the token was issued to: OpenID Connect's `azp`, RFC 9068's `client_id`, or `appid`.
    let client: String?
    /// Whether the token results from a person's login: it repeats a request's `nonce`, has the time of the login
    /// (`auth_time`), or has the scope `openid`. Without the scope `email`, such a token has no address either.
    let isOfLogin: Bool

    private enum CodingKeys: String, CodingKey {
        case iss, sub, aud, exp, nbf, iat, email, name, nonce, appid, scope, scp, tid, idp, acct
        case edov = "xms_edov"
        case preferredUsername = "preferred_username"
        case authenticatedAt = "auth_time"
        case isEmailVerified = "email_verified"
        case authorizedParty = "azp"
        case clientID = "client_id"
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        iss = try container.decode(String.self, forKey: .iss)
        sub = try container.decode(String.self, forKey: .sub)
        if let one = try? container.decode(String.self, forKey: .aud) {
            aud = [one]
        } else {
            aud = try container.decode([String].self, forKey: .aud)
        }
        exp = try container.decode(Double.self, forKey: .exp)
        nbf = try container.decodeIfPresent(Double.self, forKey: .nbf)
        iat = try container.decodeIfPresent(Double.self, forKey: .iat)
        email = try container.decodeIfPresent(String.self, forKey: .email)
        // Optional: a malformed name does not reject the token.
        name = try? container.decode(String.self, forKey: .name)
        nonce = try container.decodeIfPresent(String.self, forKey: .nonce)
        authorizedParty = try container.decodeIfPresent(String.self, forKey: .authorizedParty)
        client =
            try authorizedParty ?? container.decodeIfPresent(String.self, forKey: .clientID)
            ?? container.decodeIfPresent(String.self, forKey: .appid)
        let scopes = [CodingKeys.scope, .scp].flatMap { Self.scopes(container, $0) }
        isOfLogin =
            container.contains(.nonce) || container.contains(.authenticatedAt) || scopes.contains("openid")
        if let text = try? container.decode(String.self, forKey: .isEmailVerified) {
            isEmailVerified = text == "true"
        } else {
            isEmailVerified = try container.decodeIfPresent(Bool.self, forKey: .isEmailVerified)
        }
        isDomainVerified = container.contains(.edov) ? Self.isTrue(container, .edov) : nil
        tenantID = container.contains(.tid) ? (try? container.decode(String.self, forKey: .tid)) ?? "" : nil
        preferredUsername = try? container.decode(String.self, forKey: .preferredUsername)
        identityProvider = container.contains(.idp) ? (try? container.decode(String.self, forKey: .idp)) ?? "" : nil
        isGuest = container.contains(.acct) && (try? container.decode(Int.self, forKey: .acct)) != 0
    }

    private static func isTrue(_ container: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) -> Bool {
        if let flag = try? container.decode(Bool.self, forKey: key) { return flag }
        if let number = try? container.decode(Int.self, forKey: key) { return number == 1 }
        return (try? container.decode(String.self, forKey: key)).map { ["1", "true"].contains($0) } ?? false
    }

    /// Returns the scopes of a space-separated string or an array: providers use both.
    private static func scopes(_ container: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) -> [String] {
        if let text = try? container.decode(String.self, forKey: key) {
            return text.split(separator: " ").map(String.init)
        }
        return (try? container.decode([String].self, forKey: key)) ?? []
    }

    /// Verifies everything except the signature and the issuer.
    ///
    /// - Parameters:
    ///   - now: Seconds since 1970.
    ///   - clockSkewMax: The tolerated clock difference from the issuer, in seconds.
    func identity(
        in environment: EnvironmentIdentity, now: Int64, clockSkewMax: Int64
    ) throws(TokenError) -> Identity {
        let now = Double(now)
        let skew = Double(clockSkewMax)
        guard exp.isFinite, exp < 1e11 else { throw .malformed("exp") }
        guard now < exp + skew else { throw .expired }
        for start in [nbf, iat] {
            if let start, start > now + skew { throw .notYetValid }
        }
        guard aud.contains(environment.audience) else { throw .audienceWrong }
        guard !sub.isEmpty, sub.utf8.count <= 255 else { throw .malformed("sub") }
        // PostgreSQL's text cannot hold it.
        for text in [sub, email, name] where text?.utf8.contains(0) == true { throw .malformed("U+0000") }
        guard let address = try address(in: environment) else {
            // A client-credentials token, unless it has traits of a login: a person's token may lack the address too.
            guard !isOfLogin else { throw .emailMissing }
            return Identity(
                environment: environment.environment, issuer: iss, subject: sub, email: nil, name: name,
                expires: Int64(exp), client: client ?? sub)
        }
        return Identity(
            environment: environment.environment, issuer: iss, subject: sub, email: address, name: name,
            expires: Int64(exp), nonce: nonce, authorizedParty: authorizedParty)
    }
}
