import ServiceRuntime

extension DecodingError {
    /// Where something is wrong, and what, in one line.
    var place: String {
        func place(_ context: Context, _ more: String = "") -> String {
            let path = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
            let text = path.joined().drop { $0 == "." }
            return (text.isEmpty ? "" : text + ": ") + (more.isEmpty ? context.debugDescription : more)
        }
        switch self {
        case .keyNotFound(let key, let context): return place(context, "'\(key.stringValue)' is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            return place(context)
        @unknown default: return "\(self)"
        }
    }
}
