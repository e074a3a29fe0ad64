import FoundationEssentials

/// Unpadded base64url (RFC 7515, 2).
package enum Base64URL {
    /// Encodes bytes.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        let text = Data(bytes).base64EncodedString().utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): nil
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes a text; returns `nil` if it is not unpadded base64url.
    package static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
        var padded: [UInt8] = []
        padded.reserveCapacity(text.count + 3)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): padded.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): padded.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: padded.append(byte)
            }
        }
        while padded.count % 4 != 0 { padded.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(padded)).map { Array($0) }
    }

    /// Whether a byte is a character of the alphabet.
    package static func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Returns `byteCount` bytes of the system's random generator, encoded.
    package static func random(byteCount: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return text((0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}
