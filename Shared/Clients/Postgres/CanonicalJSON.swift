package import Essentials
package import FoundationEssentials

/// A JSON document stored as `text`, in the form in which what says the same has the same bytes (``JSONCanonical``).
///
/// It is made where JSON enters; from there on it is bytes that are stored, compared, published and sent as they are.
package struct CanonicalJSON: Sendable, Equatable, Hashable {
    package let bytes: [UInt8]

    /// Takes JSON in any form.
    ///
    /// - Throws: ``JSONProblem``, the first one found.
    package init(_ json: [UInt8]) throws(JSONProblem) { bytes = try JSONCanonical.bytes(of: json) }

    /// Takes JSON in any form.
    ///
    /// - Throws: ``JSONProblem``, the first one found.
    package init(_ json: String) throws(JSONProblem) { try self.init(Array(json.utf8)) }

    /// Encodes a value.
    package init(encoding value: some Encodable, by encoder: JSONEncoder = JSONEncoder()) throws {
        try self.init([UInt8](try encoder.encode(value)))
    }

    /// This object with the members of `patch` in place of, or beside, its own.
    ///
    /// - Throws: ``JSONProblem`` when one of the two is no object.
    package func merging(_ patch: CanonicalJSON) throws(JSONProblem) -> CanonicalJSON {
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
