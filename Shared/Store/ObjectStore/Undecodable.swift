import Essentials
package import FoundationEssentials
import Model
package import Postgres

/// Stored JSON that is not what it should be: a newer service, or a person, wrote it.
package struct Undecodable: Error, Equatable, CustomStringConvertible {
    /// What does not decode, and why.
    package let description: String
    package init(description: String) { self.description = description }
}

extension JSONBytes {
    /// The value that the JSON stands for.
    ///
    /// - Parameter name: What it is, for the error's text.
    package func decoded<Value: Decodable>(
        as type: Value.Type, by decoder: JSONDecoder, name: @autoclosure () -> String
    ) throws(Undecodable) -> Value {
        try read(bytes, as: type, by: decoder, name: name())
    }
}

private func read<Value: Decodable>(
    _ bytes: [UInt8], as type: Value.Type, by decoder: JSONDecoder, name: @autoclosure () -> String
) throws(Undecodable) -> Value {
    do {
        return try decoder.decode(type, from: Data(bytes))
    } catch {
        throw Undecodable(description: "\(name()) does not decode: \(problem(error))")
    }
}

private func problem(_ error: any Error) -> String {
    let (field, context): (String?, DecodingError.Context)
    switch error {
    case DecodingError.keyNotFound(let key, let found): (field, context) = (key.stringValue, found)
    case DecodingError.typeMismatch(_, let found), DecodingError.valueNotFound(_, let found),
        DecodingError.dataCorrupted(let found):
        (field, context) = (nil, found)
    default: return String(describing: error)
    }
    let path = (context.codingPath.map(\.stringValue) + [field].compactMap { $0 }).joined(separator: ".")
    return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
}

extension RealmObject {
    /// The object's fields; `nil` for a tombstone.
    package func decoded<Fields: Decodable>(
        as type: Fields.Type, by decoder: JSONDecoder
    ) throws(Undecodable) -> Fields? {
        guard let fields else { return nil }
        return try read(fields.bytes, as: type, by: decoder, name: "\(key.kind.rawValue) \(key.id.text)")
    }
}
