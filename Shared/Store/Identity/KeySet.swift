import FoundationEssentials
import JWTKit

/// An identity provider's public keys (RFC 7517), fetched on demand and retained while the provider is unavailable.
actor KeySet {
    /// The limit of a response's size.
    static let bytesMax = 1 << 18
    static let keyCountMax = 64

    private let url: String
    private let fetch: @Sendable (String) async throws -> [UInt8]
    private let refetchMin: Duration
    private let ageMax: Duration
    private let now: @Sendable () -> Int64

    /// A published key and its verifiers.
    private struct Key {
        /// `nil` if the key has none.
        let kid: String?
        /// The verifier of each algorithm that the key can be used with.
        let algorithms: [String: any JWTAlgorithm]
    }

    private var keys: [Key] = []
    private var fetchedAt: Int64?
    private var attemptedAt: Int64?
    /// The reason why the last fetch failed; empty if it succeeded.
    private var lastFailure = ""
    private var running: Task<Void, Never>?

    /// - Parameters:
    ///   - refetchMin: The minimum interval between fetches, regardless of the tokens received.
    ///   - ageMax: Keys older than this are refetched, so that withdrawn keys expire.
    ///   - now: Seconds since 1970.
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

    /// Returns the keys that can verify a signature: several keys with different algorithms and uses may share a `kid`.
    ///
    /// - Parameter kid: `nil` if the token names none: every key that fits the algorithm is a candidate.
    func keys(_ kid: String?, for algorithm: String) async throws -> [any JWTAlgorithm] {
        if named(kid).isEmpty {
            await refetch()?.value
        } else if fetchedAt.map({ now() - $0 >= ageMax.components.seconds }) ?? true {
            // No caller waits for a refresh: cached keys stay valid while the provider is unavailable.
            _ = refetch()
        }
        guard fetchedAt != nil else { throw TokenError.keysUnavailable(lastFailure) }
        var candidates = named(kid)
        // A key without a `kid` matches any.
        if candidates.isEmpty { candidates = keys.filter { $0.kid == nil } }
        guard !candidates.isEmpty else {
            // The key may be new and unread: the token's validity is undetermined.
            throw lastFailure.isEmpty ? TokenError.keyUnknown : TokenError.keysUnavailable(lastFailure)
        }
        let fitting = candidates.compactMap { $0.algorithms[algorithm] }
        guard !fitting.isEmpty else { throw TokenError.algorithmRefused(algorithm) }
        return fitting
    }

    private func named(_ kid: String?) -> [Key] { kid.map { kid in keys.filter { $0.kid == kid } } ?? keys }

    /// Starts a fetch unless the last one started within `refetchMin`; concurrent callers share the running fetch.
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
            guard bytes.count <= Self.bytesMax else {
                throw TokenError.keysUnavailable("the response exceeds \(Self.bytesMax) bytes")
            }
            keys = try await Self.decode(bytes)
            fetchedAt = now()
            lastFailure = ""
        } catch {
            // Keys read before remain valid.
            lastFailure = "\(error)"
        }
    }

    /// Decodes signature keys. Ignores unsupported types: a provider may publish more than is used here.
    private static func decode(_ bytes: [UInt8]) async throws -> [Key] {
        struct Document: Decodable {
            struct Entry: Decodable {
                let jwk: JWK?

                init(from decoder: any Decoder) throws {
                    struct Purpose: Decodable {
                        let use: String?
                        let alg: String?
                        let key_ops: [String]?
                    }
                    let purpose = try? Purpose(from: decoder)
                    let signs =
                        (purpose?.use ?? "sig") == "sig" && purpose?.key_ops?.contains("verify") != false
                        && purpose?.alg.map(TokenVerifier.algorithms.contains) != false
                    jwk = signs ? try? JWK(from: decoder) : nil
                }
            }
            let keys: [Entry]
        }
        var keys: [Key] = []
        for case let jwk? in try JSONDecoder().decode(Document.self, from: Data(bytes)).keys.map(\.jwk) {
            guard keys.count < keyCountMax else { break }
            var algorithms: [String: any JWTAlgorithm] = [:]
            for name in TokenVerifier.algorithms { algorithms[name] = await Self.algorithm(name, of: jwk) }
            keys.append(Key(kid: jwk.keyIdentifier?.string, algorithms: algorithms))
        }
        return keys
    }

    /// - Returns: `nil` if the key is of another type or for another algorithm: the key determines the algorithm, not
    ///   the token.
    private static func algorithm(_ name: String, of jwk: JWK) async -> (any JWTAlgorithm)? {
        let kid = JWKIdentifier(string: "key")
        var jwk = jwk
        jwk.keyIdentifier = kid
        // A separate collection: a collection creates a single algorithm for each key.
        guard let made = try? await JWTKeyCollection().add(jwk: jwk).getKey(for: kid, alg: name), made.name == name
        else { return nil }
        return made
    }
}
