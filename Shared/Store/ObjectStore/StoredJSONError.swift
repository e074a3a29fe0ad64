import Essentials
package import FoundationEssentials
import Model
package import Postgres

/// Stored JSON that cannot be decoded: it was written by a newer service or manually.
package struct StoredJSONError: Error, Equatable, CustomStringConvertible {
    /// The object or column, and the reason.
    package let description: String
    package init(description: String) { self.description = description }
}

extension JSONBytes {
    /// Decodes the JSON.
    ///
    /// - Parameter name: A description of the value for the error.
    package func decoded<Value: Decodable>(
        as type: Value.Type, by decoder: JSONDecoder, name: @autoclosure () -> String
    ) throws(StoredJSONError) -> Value {
        try read(bytes, as: type, by: decoder, name: name())
    }
}

private func read<Value: Decodable>(
    _ bytes: [UInt8], as type: Value.Type, by decoder: JSONDecoder, name: @autoclosure () -> String
) throws(StoredJSONError) -> Value {
    do {
        return try decoder.decode(type, from: Data(bytes))
    } catch {
        throw StoredJSONError(description: "\(name()) cannot be decoded: \(problem(error))")
    }
}

private func problem(_ error: any Error) -> String {
    let (field, context): (String?, DecodingError.Context)
    switch error {
    case DecodingError.keyNotFound(let key, let failure): (field, context) = (key.stringValue, failure)
    case DecodingError.typeMismatch(_, let failure), DecodingError.valueNotFound(_, let failure),
        DecodingError.dataCorrupted(let failure):
        (field, context) = (nil, failure)
    default: return String(describing: error)
    }
    let path = (context.codingPath.map(\.stringValue) + [field].compactMap { $0 }).joined(separator: ".")
    return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
}

extension RealmObject {
    /// Decodes the object's fields; returns `nil` for a tombstone.
    package func decoded<Fields: Decodable>(
        as type: Fields.Type, by decoder: JSONDecoder
    ) throws(StoredJSONError) -> Fields? {
        guard let fields else { return nil }
        return try read(fields.bytes, as: type, by: decoder, name: "\(key.kind.rawValue) \(key.id.text)")
    }
}
