import Crypto
import CryptoExtras
import Essentials
import FoundationEssentials
import Glibc
import JWTKit

/// The keys an identity provider signs with, kept in a file that only its owner may read.
actor IdentityKeys {
    /// Published keys; older ones are dropped, and their tokens with them.
    static let keyCountMax = 8

    struct Key: Codable, Sendable {
        var kid: String
        /// `ES256` or `RS256`.
        var algorithm: String
        var pem: String
    }

    private(set) var keys: [Key]
    private var signers = JWTKeyCollection()
    private let path: String?

    private init(keys: [Key], path: String?) {
        self.keys = keys
        self.path = path
    }

    /// - Parameter path: `nil` keeps the keys in memory.
    static func load(from path: String?) async throws -> IdentityKeys {
        let data = path.flatMap { FileManager.default.contents(atPath: $0) }
        let stored = try data.map { try JSONDecoder().decode([Key].self, from: $0) }
        let keys = IdentityKeys(keys: stored ?? [], path: path)
        try await stored == nil ? keys.rotate() : keys.addSigners()
        return keys
    }

    /// Signs with new keys from now on. The former keys stay published, so their tokens stay valid.
    func rotate() async throws {
        let elliptic = P256.Signing.PrivateKey().pemRepresentation
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation
        keys.insert(contentsOf: [Self.named("ES256", elliptic), Self.named("RS256", rsa)], at: 0)
        keys = Array(keys.prefix(Self.keyCountMax))
        try await addSigners()
        if let path { try store(at: path) }
    }

    func sign(_ claims: IdentityClaims, with algorithm: String) async throws -> String {
        guard let key = keys.first(where: { $0.algorithm == algorithm }) else {
            throw EmulatorError("unknown algorithm \(algorithm): ES256 and RS256 are known")
        }
        return try await signers.sign(claims, kid: JWKIdentifier(string: key.kid))
    }

    /// The public halves (RFC 7517).
    func publicKeys() throws -> [[String: String]] {
        try keys.map { key in
            var jwk = ["kid": key.kid, "alg": key.algorithm, "use": "sig"]
            if key.algorithm == "ES256" {
                let point = try P256.Signing.PrivateKey(pemRepresentation: key.pem).publicKey.rawRepresentation
                jwk["kty"] = "EC"
                jwk["crv"] = "P-256"
                jwk["x"] = Base64URL.text(point.prefix(32))
                jwk["y"] = Base64URL.text(point.suffix(32))
            } else {
                let numbers = try _RSA.Signing.PrivateKey(pemRepresentation: key.pem).publicKey.getKeyPrimitives()
                jwk["kty"] = "RSA"
                jwk["n"] = Base64URL.text(numbers.modulus)
                jwk["e"] = Base64URL.text(numbers.publicExponent)
            }
            return jwk
        }
    }

    private func addSigners() async throws {
        signers = JWTKeyCollection()
        for key in keys {
            let kid = JWKIdentifier(string: key.kid)
            if key.algorithm == "ES256" {
                await signers.add(ecdsa: try ES256PrivateKey(pem: key.pem), kid: kid)
            } else {
                await signers.add(rsa: try Insecure.RSA.PrivateKey(pem: key.pem), digestAlgorithm: .sha256, kid: kid)
            }
        }
    }

    private static func named(_ algorithm: String, _ pem: String) -> Key {
        Key(kid: "\(algorithm)-\(UUID().uuidString.prefix(8))".lowercased(), algorithm: algorithm, pem: pem)
    }

    private func store(at path: String) throws {
        // Private before it holds anything, and replaced whole.
        let draft = path + ".new"
        unsafe unlink(draft)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw EmulatorError("cannot store the keys in \(path)") }
        defer { close(descriptor) }
        let bytes = try JSONEncoder().encode(keys)
        let count = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count, unsafe rename(draft, path) == 0 else {
            throw EmulatorError("cannot store the keys in \(path)")
        }
    }
}
