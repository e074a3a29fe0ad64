import Crypto
import Essentials
import FoundationEssentials

/// Encrypts messages end to end, so that the push service cannot read them.
///
/// Source: RFC 8291 (keys), RFC 8188 (`Content-Encoding: aes128gcm`).
package enum PushMessage {
    /// Limit on the bytes of a text. A push service may reject a body of more than 4,096 bytes (RFC 8030, 7.2), of
    /// which the header has 86, the delimiter 1 and the authentication tag 16.
    package static let textBytesMax = bodyBytesMax - headByteCount - 1 - 16

    private static let bodyBytesMax = 4_096
    private static let saltByteCount = 16
    private static let pointByteCount = 65
    private static let headByteCount = saltByteCount + 4 + 1 + pointByteCount

    /// Returns the body of a request with a message. Each call returns a different body.
    ///
    /// - Returns: `nil` for a text of more than ``textBytesMax`` bytes.
    package static func body(of text: [UInt8], to subscription: PushSubscription) -> [UInt8]? {
        var generator = SystemRandomNumberGenerator()
        let salt = (0..<saltByteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return body(of: text, to: subscription, from: P256.KeyAgreement.PrivateKey(), salt: salt)
    }

    /// - Parameters:
    ///   - key: An ephemeral key for this message alone.
    ///   - salt: 16 random bytes.
    static func body(
        of text: [UInt8], to subscription: PushSubscription, from key: P256.KeyAgreement.PrivateKey, salt: [UInt8]
    ) -> [UInt8]? {
        guard text.count <= textBytesMax else { return nil }
        let ours = Array(key.publicKey.x963Representation)
        let theirs = Array(subscription.publicKey.x963Representation)
        // Cannot fail: the subscription's key is a point on the curve.
        guard let shared = try? key.sharedSecretFromKeyAgreement(with: subscription.publicKey) else { return nil }
        let secret = shared.hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: subscription.secret, sharedInfo: info("WebPush: info") + theirs + ours,
            outputByteCount: 32)
        func derived(_ name: String, _ byteCount: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: secret, salt: salt, info: info("Content-Encoding: \(name)"),
                outputByteCount: byteCount)
        }
        let nonce = unsafe derived("nonce", 12).withUnsafeBytes { unsafe Array($0) }
        // One record, the last: a delimiter of 2 and no padding.
        guard let number = try? AES.GCM.Nonce(data: nonce),
            let sealed = try? AES.GCM.seal(text + [2], using: derived("aes128gcm", 16), nonce: number)
        else { return nil }
        let recordSize = [UInt8](repeating: 0, count: 2) + [UInt8(bodyBytesMax >> 8), UInt8(bodyBytesMax & 0xFF)]
        return salt + recordSize + [UInt8(pointByteCount)] + ours + Array(sealed.ciphertext) + Array(sealed.tag)
    }

    /// Returns a text with a terminating zero.
    private static func info(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
}
