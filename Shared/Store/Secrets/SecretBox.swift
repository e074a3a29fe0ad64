package import Crypto
internal import FoundationEssentials

/// Encrypts secrets that are stored in PostgreSQL: AES-256-GCM (NIST SP 800-38D) with keys from the configuration.
///
/// A sealed secret is 4 bytes that identify its key, then the nonce, the ciphertext and the tag. It is bound to its
/// context by associated data: copied into another row, it cannot be opened.
package struct SecretBox: Sendable {
    /// An invalid key or sealed secret. Never contains a secret.
    package struct Failure: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    private let keys: [(name: [UInt8], key: SymmetricKey)]

    private static let nameCount = 4
    private static let keyCount = 32

    /// - Parameter texts: Keys of 32 bytes in base64. The first one seals, all open. To rotate: append the new key in
    ///   all services, move it to the front, run `fieldpost secrets seal`, remove the old key.
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

    /// Whether a key is configured.
    package var canSeal: Bool { !keys.isEmpty }

    /// Whether a secret was sealed with the current key.
    package func isCurrent(_ sealed: [UInt8]) -> Bool {
        keys.first.map { $0.name == Array(sealed.prefix(Self.nameCount)) } ?? false
    }

    /// Derives a key for another purpose from each key (HKDF, RFC 5869), newest first.
    package func keys(for purpose: String) -> [SymmetricKey] {
        keys.map {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: $0.key, info: Array(purpose.utf8), outputByteCount: Self.keyCount)
        }
    }

    /// Encrypts a secret with the first key.
    ///
    /// - Parameter context: Identifies the row that stores the secret; see ``SecretContext``.
    package func seal(_ secret: [UInt8], at context: String) throws(Failure) -> [UInt8] {
        guard let first = keys.first else { throw Failure(description: "no secret key is configured") }
        guard let box = try? AES.GCM.seal(secret, using: first.key, authenticating: Array(context.utf8)),
            let combined = box.combined
        else { throw Failure(description: "sealing a secret failed") }
        return first.name + Array(combined)
    }

    /// Decrypts a secret that was sealed for the same context.
    package func open(_ sealed: [UInt8], at context: String) throws(Failure) -> [UInt8] {
        let name = Array(sealed.prefix(Self.nameCount))
        guard let entry = keys.first(where: { $0.name == name }) else {
            throw Failure(description: "a secret was sealed with a key that is not configured")
        }
        guard let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst(Self.nameCount)),
            let secret = try? AES.GCM.open(box, using: entry.key, authenticating: Array(context.utf8))
        else { throw Failure(description: "a sealed secret was altered or belongs to another row") }
        return Array(secret)
    }

    package func seal(_ secret: String, at context: String) throws(Failure) -> [UInt8] {
        try seal(Array(secret.utf8), at: context)
    }

    package func openText(_ sealed: [UInt8], at context: String) throws(Failure) -> String {
        String(decoding: try open(sealed, at: context), as: UTF8.self)
    }
}
