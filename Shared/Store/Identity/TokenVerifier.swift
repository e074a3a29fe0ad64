import Crypto
import Essentials
import FoundationEssentials
import JWTKit
import Synchronization
package import Tenants

/// Verifies bearer tokens and returns their identity and environment.
///
/// A token is verified once; until it expires, each further request costs a hash and a lookup.
package final class TokenVerifier: Sendable {
    package struct Limits: Sendable {
        package var tokenBytesMax = 8192
        package var clockSkewMax: Duration = .seconds(60)
        package var refetchMin: Duration = .seconds(10)
        package var keyAgeMax: Duration = .seconds(3600)
        package var cachedCountMax = 20_000

        package init() {}
    }

    /// The accepted signature algorithms: asymmetric only. `none` and HMAC are never accepted.
    static let algorithms: Set<String> = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384"]

    private let limits: Limits
    private let environments: @Sendable () -> [EnvironmentIdentity]
    private let fetch: @Sendable (String) async throws -> [UInt8]
    private let now: @Sendable () -> Int64
    private let keySets = Mutex<[String: KeySet]>([:])
    private let cache: Mutex<TokenCache>

    /// - Parameters:
    ///   - environments: The accepted issuers. Called on every request, so it must be fast.
    ///   - now: Seconds since 1970.
    ///   - fetch: Downloads a JWKS document, with its own limits of time and size.
    package init(
        limits: Limits = Limits(), environments: @escaping @Sendable () -> [EnvironmentIdentity] = { [] },
        now: @escaping @Sendable () -> Int64 = { Timestamp.now().secondsSinceEpoch },
        fetch: @escaping @Sendable (String) async throws -> [UInt8]
    ) {
        self.limits = limits
        self.environments = environments
        self.now = now
        self.fetch = fetch
        self.cache = Mutex(TokenCache(countMax: limits.cachedCountMax))
    }

    /// Returns the end of an identity's validity, in seconds since 1970: its expiry plus the tolerated clock skew.
    package func end(of identity: Identity) -> Int64 { identity.expires + limits.clockSkewMax.components.seconds }

    /// Returns the identity of a token of the environments given at initialisation.
    ///
    /// - Parameter token: The value after `Bearer ` in the request's `Authorization`.
    /// - Throws: `TokenError`.
    package func identity(of token: String) async throws -> Identity {
        try await identity(of: token, among: environments())
    }

    /// Returns the identity of a token of certain environments.
    ///
    /// - Parameter accepted: The accepted issuers and audiences.
    /// - Throws: `TokenError`.
    package func identity(of token: String, among accepted: [EnvironmentIdentity]) async throws -> Identity {
        let bytes = Array(token.utf8)
        guard bytes.count <= limits.tokenBytesMax else { throw TokenError.malformed("too long") }
        let digest = SHA256.hash(data: bytes)
        if let (identity, environment) = cache.withLock({ $0.find(digest) }), accepted.contains(environment) {
            guard now() < end(of: identity) else { throw TokenError.expired }
            return identity
        }
        let parts = try TokenParts(bytes)
        guard Self.algorithms.contains(parts.header.alg) else { throw TokenError.algorithmRefused(parts.header.alg) }
        let environment = try Self.environment(of: parts.claims, among: accepted)
        let keys = try await keySet(at: environment.jwksURL).keys(parts.header.kid, for: parts.header.alg)
        guard keys.contains(where: { (try? $0.verify(parts.signature, signs: parts.signed)) == true }) else {
            throw TokenError.signatureWrong
        }
        let identity = try parts.claims.identity(
            in: environment, now: now(), clockSkewMax: limits.clockSkewMax.components.seconds)
        cache.withLock { $0.add(digest, identity, environment) }
        return identity
    }

    /// Returns the environment of a token: its audience distinguishes environments with the same issuer.
    private static func environment(
        of claims: TokenClaims, among accepted: [EnvironmentIdentity]
    ) throws(TokenError) -> EnvironmentIdentity {
        let issued = accepted.filter { $0.issuer == claims.iss }
        guard !issued.isEmpty else { throw .issuerUnknown }
        guard let environment = issued.first(where: { claims.aud.contains($0.audience) }) else { throw .audienceWrong }
        return environment
    }

    private func keySet(at url: String) -> KeySet {
        keySets.withLock { sets in
            if let set = sets[url] { return set }
            let set = KeySet(
                url: url, refetchMin: limits.refetchMin, ageMax: limits.keyAgeMax, now: now, fetch: fetch)
            sets[url] = set
            return set
        }
    }
}

/// A cache of verified tokens by their hash; the tokens themselves are not stored.
///
/// Approximates least-recently-used eviction by two generations: when the younger is full, it replaces the older one,
/// and entries not used during a whole generation are evicted.
struct TokenCache {
    private typealias Entries = [SHA256.Digest: (Identity, EnvironmentIdentity)]

    private let generationCountMax: Int
    private var younger: Entries = [:]
    private var older: Entries = [:]

    init(countMax: Int) { generationCountMax = max(1, countMax / 2) }

    var count: Int { younger.count + older.count }

    mutating func find(_ digest: SHA256.Digest) -> (Identity, EnvironmentIdentity)? {
        if let entry = younger[digest] { return entry }
        guard let entry = older.removeValue(forKey: digest) else { return nil }
        add(digest, entry.0, entry.1)
        return entry
    }

    mutating func add(_ digest: SHA256.Digest, _ identity: Identity, _ environment: EnvironmentIdentity) {
        if younger.count >= generationCountMax {
            older = younger
            younger = [:]
        }
        younger[digest] = (identity, environment)
    }
}
