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

    /// A published key, and what verifies the signatures it may make.
    private struct Key {
        /// `nil`: it has none.
        let kid: String?
        /// By the algorithm.
        let algorithms: [String: any JWTAlgorithm]
    }

    private var keys: [Key] = []
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

    /// The keys that may have made a signature: one `kid` may name several, of other algorithms and uses.
    ///
    /// - Parameter kid: `nil`: the token names none, and each key that fits the algorithm may have signed it.
    func keys(_ kid: String?, for algorithm: String) async throws -> [any JWTAlgorithm] {
        if named(kid).isEmpty {
            await refetch()?.value
        } else if fetchedAt.map({ now() - $0 >= ageMax.components.seconds }) ?? true {
            // No caller waits for a refresh: cached keys stay valid while the provider is unavailable.
            _ = refetch()
        }
        guard fetchedAt != nil else { throw TokenError.keysUnavailable(lastFailure) }
        var found = named(kid)
        // A key without a name may have any.
        if found.isEmpty { found = keys.filter { $0.kid == nil } }
        guard !found.isEmpty else {
            // The provider may have a new key that could not be read: nothing is known about the token.
            throw lastFailure.isEmpty ? TokenError.keyUnknown : TokenError.keysUnavailable(lastFailure)
        }
        let fitting = found.compactMap { $0.algorithms[algorithm] }
        guard !fitting.isEmpty else { throw TokenError.algorithmRefused(algorithm) }
        return fitting
    }

    private func named(_ kid: String?) -> [Key] { kid.map { kid in keys.filter { $0.kid == kid } } ?? keys }

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
            keys = try await Self.decode(bytes)
            fetchedAt = now()
            lastFailure = ""
        } catch {
            // What was read before stays good.
            lastFailure = "\(error)"
        }
    }

    /// Signing keys. Kinds that are not known are left out: a provider may publish more than is used here.
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

    /// - Returns: `nil` if the key is of another type, or for another algorithm: a key says or implies what it is for,
    ///   a token does not choose.
    private static func algorithm(_ name: String, of jwk: JWK) async -> (any JWTAlgorithm)? {
        let kid = JWKIdentifier(string: "key")
        var jwk = jwk
        jwk.keyIdentifier = kid
        // A collection of its own: one makes a single algorithm of each key.
        guard let made = try? await JWTKeyCollection().add(jwk: jwk).getKey(for: kid, alg: name), made.name == name
        else { return nil }
        return made
    }
}
