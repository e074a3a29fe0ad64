package import Crypto
internal import FoundationEssentials

/// Keeps secrets unreadable in PostgreSQL: AES-256-GCM (NIST SP 800-38D) with keys from the configuration.
///
/// What is sealed begins with 4 bytes that name its key, then the nonce, the ciphertext and the tag. Each secret is
/// bound to its place: copied into another row it does not open.
package struct SecretBox: Sendable {
    /// What is wrong with keys or sealed bytes. It never holds a secret.
    package struct Failure: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    private let keys: [(name: [UInt8], key: SymmetricKey)]

    private static let nameCount = 4
    private static let keyCount = 32

    /// - Parameter texts: Keys of 32 bytes in base64. The first seals, all open. To change it: the new key goes last
    ///   everywhere, then first, then `fieldpost secrets seal`, then the old one goes.
    package init(_ texts: [String]) throws(Failure) {
        var keys: [(name: [UInt8], key: SymmetricKey)] = []
        for text in texts {
            guard let data = Data(base64Encoded: text), data.count == Self.keyCount else {
                throw Failure(description: "a secret key must be 32 bytes in base64 (head -c 32 /dev/urandom | base64)")
            }
            keys.append((Array(SHA256.hash(data: data).prefix(Self.nameCount)), SymmetricKey(data: data)))
        }
        self.keys = keys
    }

    /// Whether there is a key at all.
    package var canSeal: Bool { !keys.isEmpty }

    /// Whether it was sealed with the key that seals now.
    package func isCurrent(_ sealed: [UInt8]) -> Bool {
        keys.first.map { $0.name == Array(sealed.prefix(Self.nameCount)) } ?? false
    }

    /// Keys for another purpose than sealing, derived from each key (HKDF, RFC 5869); the first is the newest.
    package func keys(for purpose: String) -> [SymmetricKey] {
        keys.map {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: $0.key, info: Array(purpose.utf8), outputByteCount: Self.keyCount)
        }
    }

    /// - Parameter place: Where the secret is kept, for example `provider/1`.
    package func seal(_ secret: [UInt8], at place: String) throws(Failure) -> [UInt8] {
        guard let first = keys.first else { throw Failure(description: "no secret key is configured") }
        guard let box = try? AES.GCM.seal(secret, using: first.key, authenticating: Array(place.utf8)),
            let combined = box.combined
        else { throw Failure(description: "a secret could not be sealed") }
        return first.name + Array(combined)
    }

    package func open(_ sealed: [UInt8], at place: String) throws(Failure) -> [UInt8] {
        let name = Array(sealed.prefix(Self.nameCount))
        guard let entry = keys.first(where: { $0.name == name }) else {
            throw Failure(description: "the key that a secret was sealed with is not configured")
        }
        guard let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst(Self.nameCount)),
            let secret = try? AES.GCM.open(box, using: entry.key, authenticating: Array(place.utf8))
        else { throw Failure(description: "a sealed secret was changed, or belongs to another place") }
        return Array(secret)
    }

    package func seal(_ secret: String, at place: String) throws(Failure) -> [UInt8] {
        try seal(Array(secret.utf8), at: place)
    }

    package func openText(_ sealed: [UInt8], at place: String) throws(Failure) -> String {
        String(decoding: try open(sealed, at: place), as: UTF8.self)
    }
}
