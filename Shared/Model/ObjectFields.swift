import FoundationEssentials

extension Kind {
    /// The names of the kind's fields. A golden file says the same.
    public var fieldNames: [String] { row.fieldNames }

    /// The largest fields of an object of any kind, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// The largest fields of an object that everybody of an environment holds.
    public static let commonBytesMax = 4096

    /// The most bytes that the fields of an object of this kind may have.
    public var fieldsBytesMax: Int { row.fieldsBytesMax }

    /// Why these fields are not those of an object of this kind; `nil` when they are.
    public func objection(to fields: [UInt8]) -> String? { Self.objection(to: fields, as: row.fields) }

    private static func objection<Fields: KindFields>(to fields: [UInt8], as type: Fields.Type) -> String? {
        do {
            return try JSONDecoder().decode(type, from: Data(fields)).objection
        } catch let error as DecodingError {
            return describe(error)
        } catch {
            return "it cannot be read"
        }
    }

    private static func describe(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.first.map { "'\($0.stringValue)'" } ?? "the object"
        }
        return switch error {
        case .keyNotFound(let key, _): "'\(key.stringValue)' is missing"
        case .valueNotFound(_, let context): "\(place(context)) is missing"
        case .typeMismatch(_, let context): "\(place(context)) has not the shape it needs"
        case .dataCorrupted(let context): "\(place(context)): \(context.debugDescription.prefix(200))"
        @unknown default: "it cannot be read"
        }
    }
}
