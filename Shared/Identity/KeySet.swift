import FoundationEssentials
import JWTKit

/// One identity provider's public keys (RFC 7517), fetched when they are needed and kept while it is away.
actor KeySet {
    /// Larger answers are refused.
    static let bytesMax = 1 << 18
    static let keyCountMax = 64

    private let url: String
    private let fetch: @Sendable (String) async throws -> [UInt8]
    private let refetchMin: Duration
    private let ageMax: Duration
    private let now: @Sendable () -> Int64

    private var keys: [String: JWK] = [:]
    private var algorithms: [String: any JWTAlgorithm] = [:]
    private var fetchedAt: Int64?
    private var attemptedAt: Int64?
    /// Why the last attempt did not read them; empty when it did.
    private var lastFailure = ""
    private var running: Task<Void, Never>?

    /// - Parameters:
    ///   - refetchMin: The least time between two fetches, whatever tokens arrive.
    ///   - ageMax: Keys older than this are fetched again, so that a withdrawn key is forgotten.
    ///   - now: Seconds.
    init(
        url: String, refetchMin: Duration, ageMax: Duration, now: @escaping @Sendable () -> Int64,
        fetch: @escaping @Sendable (String) async throws -> [UInt8]
    ) {
        self.url = url
        self.refetchMin = refetchMin
        self.ageMax = ageMax
        self.now = now
        self.fetch = fetch
    }

    /// The key `kid`, for `algorithm` only.
    ///
    /// - Parameter kid: `nil` is good while the provider has one key.
    func key(_ kid: String?, for algorithm: String) async throws -> any JWTAlgorithm {
        if find(kid) == nil {
            await refetch()?.value
        } else if fetchedAt.map({ now() - $0 >= ageMax.components.seconds }) ?? true {
            // Nobody waits for a refresh: the key at hand stays good while the provider is away.
            _ = refetch()
        }
        guard fetchedAt != nil else { throw TokenError.keysUnavailable(lastFailure) }
        guard let (name, jwk) = find(kid) else {
            // The provider may have a new key that could not be read: nothing is known about the token.
            throw lastFailure.isEmpty ? TokenError.keyUnknown : TokenError.keysUnavailable(lastFailure)
        }
        if let known = algorithms["\(name) \(algorithm)"] { return known }
        let collection = JWTKeyCollection()
        let made: any JWTAlgorithm
        do {
            made = try await collection.add(jwk: jwk).getKey(for: jwk.keyIdentifier, alg: algorithm)
        } catch {
            throw TokenError.algorithmRefused(algorithm)
        }
        // A key says or implies what it is for; a token does not choose.
        guard made.name == algorithm else { throw TokenError.algorithmRefused(algorithm) }
        algorithms["\(name) \(algorithm)"] = made
        return made
    }

    private func find(_ kid: String?) -> (String, JWK)? {
        if let kid { return keys[kid].map { (kid, $0) } }
        return keys.count == 1 ? keys.first.map { ($0.key, $0.value) } : nil
    }

    /// Fetches unless a fetch was tried within `refetchMin`; callers that come meanwhile get the same one.
    private func refetch() -> Task<Void, Never>? {
        if let running { return running }
        if let attemptedAt, now() - attemptedAt < refetchMin.components.seconds { return nil }
        attemptedAt = now()
        let task = Task { await load() }
        running = task
        return task
    }

    private func load() async {
        defer { running = nil }
        do {
            let bytes = try await fetch(url)
            guard bytes.count <= Self.bytesMax else { throw TokenError.keysUnavailable("answer too large") }
            keys = try Self.decode(bytes)
            algorithms = [:]
            fetchedAt = now()
            lastFailure = ""
        } catch {
            // What was read before stays good.
            lastFailure = "\(error)"
        }
    }

    /// Signing keys with an id. Kinds that are not known are left out: a provider may publish more than is used here.
    private static func decode(_ bytes: [UInt8]) throws -> [String: JWK] {
        struct Document: Decodable {
            struct Entry: Decodable {
                let jwk: JWK?

                init(from decoder: any Decoder) throws {
                    struct Use: Decodable { let use: String? }
                    let use = try? Use(from: decoder).use
                    jwk = use == nil || use == "sig" ? try? JWK(from: decoder) : nil
                }
            }
            let keys: [Entry]
        }
        var keys: [String: JWK] = [:]
        for case let jwk? in try JSONDecoder().decode(Document.self, from: Data(bytes)).keys.map(\.jwk) {
            guard keys.count < keyCountMax else { break }
            var named = jwk
            if named.keyIdentifier == nil { named.keyIdentifier = JWKIdentifier(string: "") }
            keys[named.keyIdentifier?.string ?? ""] = named
        }
        return keys
    }
}
