import Crypto
import Essentials
import FoundationEssentials
import Testing

@testable import Deliveries

@Suite struct PushMessageTests {
    /// Values of RFC 8291, 5 and appendix A.
    private static let userKey = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
    private static let userPoint =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let secret = "BTBZMqHH6r4Tts7J_aSIgg"

    private func subscription(
        endpoint: String = "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
        point: String = userPoint, secret: String = secret
    ) throws -> PushSubscription {
        try PushSubscription(endpoint: endpoint, p256dh: point, auth: secret)
    }

    @Test func encryptionMatchesExampleOfRFC8291() throws {
        let key = try P256.KeyAgreement.PrivateKey(
            rawRepresentation: #require(Base64URL.bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw".utf8)))
        let salt = try #require(Base64URL.bytes("DGv6ra1nlYgDCS1FRnbzlw".utf8))
        let text = Array("When I grow up, I want to be a watermelon".utf8)
        let body = try #require(PushMessage.body(of: text, to: subscription(), from: key, salt: salt))
        let expected =
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
            + "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        #expect(Base64URL.text(body) == expected)
    }

    @Test func encryptedMessageDecrypts() throws {
        let subscription = try subscription()
        for text in ["", "SAMPL00000001 (ŕáâ) has been assigned to you", String(repeating: "x", count: 3_993)] {
            let body = try #require(PushMessage.body(of: Array(text.utf8), to: subscription))
            #expect(body.count <= 4_096)
            #expect(try decrypted(body) == Array(text.utf8))
        }
        let bodies = Set((0..<20).map { _ in PushMessage.body(of: Array("the same".utf8), to: subscription) })
        #expect(bodies.count == 20)
        #expect(PushMessage.textBytesMax == 3_993)
        #expect(PushMessage.body(of: Array(repeating: 0, count: 3_994), to: subscription) == nil)
    }

    /// Decrypts a body as a browser does; an independent implementation of the standard.
    private func decrypted(_ body: [UInt8]) throws -> [UInt8] {
        let key = try P256.KeyAgreement.PrivateKey(
            rawRepresentation: #require(Base64URL.bytes(Self.userKey.utf8)))
        #expect(body[16..<21] == [0, 0, 16, 0, 65])
        let sender = try P256.KeyAgreement.PublicKey(x963Representation: body[21..<86])
        let shared = try key.sharedSecretFromKeyAgreement(with: sender)
        let secret = try #require(Base64URL.bytes(Self.secret.utf8))
        let info = Array("WebPush: info\0".utf8) + Array(key.publicKey.x963Representation) + body[21..<86]
        let material = shared.hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: secret, sharedInfo: info, outputByteCount: 32)
        func derived(_ name: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: material, salt: body[..<16], info: Array("Content-Encoding: \(name)\0".utf8),
                outputByteCount: count)
        }
        let nonce = try unsafe AES.GCM.Nonce(data: derived("nonce", 12).withUnsafeBytes { unsafe Data($0) })
        let box = try AES.GCM.SealedBox(
            nonce: nonce, ciphertext: body[86..<(body.count - 16)], tag: body[(body.count - 16)...])
        let text = try Array(AES.GCM.open(box, using: derived("aes128gcm", 16)))
        #expect(text.last == 2)
        return text.dropLast()
    }

    @Test func invalidSubscriptionIsRejected() throws {
        #expect(try subscription().origin == "https://push.example.net")
        #expect(
            try subscription(endpoint: "https://Push.example.net:8443/a?b").origin == "https://push.example.net:8443")
        for endpoint in [
            "http://push.example.net/", "https://", "ftp://a", "", "https://me:secret@push.example.net/",
            "https://a/" + String(repeating: "x", count: 2_048),
        ] {
            #expect(throws: PushSubscription.FormatError.self) { try subscription(endpoint: endpoint) }
        }
        // A point that is not on the curve would disclose the key.
        let bent = try #require(Base64URL.bytes(Self.userPoint.utf8)).dropLast() + [0]
        for point in ["", "AAAA", "=", Base64URL.text(bent), String(Self.userPoint.dropLast(8))] {
            #expect(throws: PushSubscription.FormatError.self) { try subscription(point: point) }
        }
        for secret in ["", "AAAA", Self.secret + "AAAA", "+/+/"] {
            let error = #expect(throws: PushSubscription.FormatError.self) { try subscription(secret: secret) }
            #expect(secret.isEmpty || error?.description.contains(secret) == false)
        }
    }
}
