/// Truncation of texts from a back end. Responses may have any size, and their messages are sent to every device and
/// written to every log.
package enum BackendMessage {
    /// Maximum number of messages of one refusal.
    package static let countMax = 20
    /// Maximum length of a message in Unicode scalars, of which one visible character may have any number.
    package static let lengthMax = 500

    /// Truncates a list of messages. If there are more than ``countMax``, the last one becomes `…`.
    package static func truncated(_ messages: [String]) -> [String] {
        guard messages.count > countMax else { return messages.map { truncated($0) } }
        return messages.prefix(countMax - 1).map { truncated($0) } + ["…"]
    }

    /// Truncates a message, which then ends with `…`, and removes U+0000, which PostgreSQL does not store.
    package static func truncated(_ message: String) -> String {
        var scalars = message.unicodeScalars
        if scalars.contains("\0") { scalars.removeAll { $0 == "\0" } }
        guard scalars.dropFirst(lengthMax).first != nil else { return String(scalars) }
        return String(String.UnicodeScalarView(scalars.prefix(lengthMax - 1))) + "…"
    }
}
