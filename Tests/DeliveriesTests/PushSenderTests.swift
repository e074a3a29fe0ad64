import Crypto
import Essentials
import FoundationEssentials
import Testing

@testable import Deliveries

@Suite struct PushSenderTests {
    @Test func authorizationIdentifiesTheSender() throws {
        let key = P256.Signing.PrivateKey()
        let sender = PushSender(key: key, contact: "mailto:operations@example.com")
        let now = Timestamp(millisecondsSinceEpoch: 1_453_523_768_999)
        let header = try sender.authorization(for: "https://push.example.net", at: now)
        let parts = header.split(separator: ", ")
        #expect(parts.count == 2 && parts[1] == "k=\(sender.applicationServerKey)")
        let token = try #require(parts[0].split(separator: "=", maxSplits: 1).last).split(separator: ".")
        #expect(header.hasPrefix("vapid t=") && token.count == 3)
        let bytes = try token.map { try #require(Base64URL.bytes($0.utf8)) }
        #expect(String(decoding: bytes[0], as: UTF8.self) == #"{"alg":"ES256","typ":"JWT"}"#)
        #expect(
            String(decoding: bytes[1], as: UTF8.self)
                == #"{"aud":"https://push.example.net","exp":1453566968,"sub":"mailto:operations@example.com"}"#)
        // RFC 7515, A.3: R and S, 32 bytes each.
        #expect(bytes[2].count == 64)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: bytes[2])
        #expect(key.publicKey.isValidSignature(signature, for: Array("\(token[0]).\(token[1])".utf8)))
        let point = try #require(Base64URL.bytes(sender.applicationServerKey.utf8))
        #expect(point.count == 65 && point == Array(key.publicKey.x963Representation))
    }
}
