public import FoundationEssentials

extension UUID {
    /// The id in lower case, as PostgreSQL and RFC 9562 §4 write it; Foundation writes upper case.
    public var text: String { uuidString.lowercased() }
}

extension Decoder {
    /// The error of a value that is not what its type needs.
    package func corrupted(_ reason: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: codingPath, debugDescription: reason))
    }
}
