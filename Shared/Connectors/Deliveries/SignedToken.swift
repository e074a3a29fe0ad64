import Essentials
import FoundationEssentials

/// Encodes JSON web tokens.
///
/// Source: RFC 7515, 7.1 (compact serialization).
enum SignedToken {
    struct Header: Encodable {
        let alg: String
        var kid: String?
        var typ: String?
    }

    /// - Parameter sign: Returns the signature of the header and the claims.
    static func text(
        _ header: Header, _ claims: some Encodable, sign: ([UInt8]) throws -> Data
    ) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let signed = Base64URL.text(try encoder.encode(header)) + "." + Base64URL.text(try encoder.encode(claims))
        return signed + "." + Base64URL.text(try sign(Array(signed.utf8)))
    }
}
