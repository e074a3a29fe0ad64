package import Essentials
package import FoundationEssentials

/// A JSON document stored as `text` in canonical form, in which equal values have equal bytes (``JSONCanonical``).
///
/// JSON is converted where it enters the system; afterwards its bytes are stored, compared, published and sent
/// unchanged.
package struct CanonicalJSON: Sendable, Equatable, Hashable {
    package let bytes: [UInt8]

    /// Converts JSON from any form.
    ///
    /// - Throws: ``JSONError``, the first one detected.
    package init(_ json: [UInt8]) throws(JSONError) { bytes = try JSONCanonical.bytes(of: json) }

    /// Converts JSON from any form.
    ///
    /// - Throws: ``JSONError``, the first one detected.
    package init(_ json: String) throws(JSONError) { try self.init(Array(json.utf8)) }

    /// Encodes a value.
    package init(encoding value: some Encodable, by encoder: JSONEncoder = JSONEncoder()) throws {
        try self.init([UInt8](try encoder.encode(value)))
    }

    /// Returns this object with the members of `patch`, which replace members of the same name.
    ///
    /// - Throws: ``JSONError`` if one of the two is not an object.
    package func merging(_ patch: CanonicalJSON) throws(JSONError) -> CanonicalJSON {
        try CanonicalJSON(JSONObject(bytes).merging(JSONObject(patch.bytes)))
    }

    private init(stored bytes: [UInt8]) { self.bytes = bytes }
}

extension CanonicalJSON: PostgresValue {
    package static var typeID: UInt32 { String.typeID }
    package static var arrayTypeID: UInt32 { String.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) { bytes.append(contentsOf: self.bytes) }
    package static func decode(_ bytes: RawSpan) -> CanonicalJSON? { CanonicalJSON(stored: bytes.copied()) }
}
