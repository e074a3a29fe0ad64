/// Text that comes from a back end and is for a person: bounded, since it goes to every device and into every log, and
/// an answer may be of any size.
package enum BackendMessage {
    /// Messages of one refusal.
    package static let countMax = 20
    /// Unicode scalars of a message: what a person sees as one character may be of any number of them.
    package static let lengthMax = 500

    /// What is left of messages: `…` is the last one where there were more.
    package static func bounded(_ messages: [String]) -> [String] {
        guard messages.count > countMax else { return messages.map { bounded($0) } }
        return messages.prefix(countMax - 1).map { bounded($0) } + ["…"]
    }

    /// What is left of a message: it ends with `…` where there was more. U+0000 is left out, which cannot be stored.
    package static func bounded(_ message: String) -> String {
        var scalars = message.unicodeScalars
        if scalars.contains("\0") { scalars.removeAll { $0 == "\0" } }
        guard scalars.dropFirst(lengthMax).first != nil else { return String(scalars) }
        return String(String.UnicodeScalarView(scalars.prefix(lengthMax - 1))) + "…"
    }
}
