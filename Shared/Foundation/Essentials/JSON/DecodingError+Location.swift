extension DecodingError {
    /// The coding path and the problem, in one line.
    package var locatedDescription: String {
        func location(_ context: Context, _ problem: String = "") -> String {
            let path = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
            let text = path.joined().drop { $0 == "." }
            return (text.isEmpty ? "" : text + ": ") + (problem.isEmpty ? context.debugDescription : problem)
        }
        switch self {
        case .keyNotFound(let key, let context): return location(context, "'\(key.stringValue)' is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            return location(context)
        @unknown default: return "\(self)"
        }
    }
}
