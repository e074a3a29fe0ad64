/// Writes JSON text without building values first.
package enum JSONText {
    private static let hex = Array("0123456789abcdef".utf8)

    /// Appends `text` as a JSON string (RFC 8259 §7), truncated to at most `bytesMax` bytes of content.
    ///
    /// Every control character is escaped, so that a text cannot end its line; so are U+007F and the line separators
    /// U+2028 and U+2029, which some readers treat as line ends.
    ///
    /// - Returns: Whether all of `text` was written.
    @discardableResult
    package static func append(_ text: String, to line: inout [UInt8], bytesMax: Int = .max) -> Bool {
        line.append(UInt8(ascii: "\""))
        defer { line.append(UInt8(ascii: "\"")) }
        var used = 0
        for scalar in text.unicodeScalars {
            let width = UTF8.width(scalar)
            guard used + width <= bytesMax else { return false }
            used += width
            switch scalar.value {
            case 0x22: line += [UInt8(ascii: "\\"), UInt8(ascii: "\"")]
            case 0x5C: line += [UInt8(ascii: "\\"), UInt8(ascii: "\\")]
            case 0x0A: line += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case 0x0D: line += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
            case 0x09: line += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            case 0..<0x20, 0x7F, 0x2028, 0x2029: appendEscape(scalar.value, to: &line)
            default: line.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        return true
    }

    /// Returns `text` as a JSON string.
    package static func string(_ text: String) -> [UInt8] {
        var json: [UInt8] = []
        append(text, to: &json)
        return json
    }

    /// Returns the array of these raw values.
    package static func array(of values: [[UInt8]]) -> [UInt8] {
        var json = [UInt8(ascii: "[")]
        for value in values {
            if json.count > 1 { json.append(UInt8(ascii: ",")) }
            json += value
        }
        json.append(UInt8(ascii: "]"))
        return json
    }

    private static func appendEscape(_ value: UInt32, to line: inout [UInt8]) {
        line += [UInt8(ascii: "\\"), UInt8(ascii: "u")]
        for shift in [12, 8, 4, 0] as [UInt32] { line.append(hex[Int(value >> shift & 0xF)]) }
    }
}
