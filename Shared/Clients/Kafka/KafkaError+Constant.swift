extension KafkaError {
    /// The text of an error without what differs each time that it occurs: librdkafka appends how long the connection
    /// was in its state, and how many identical errors it did not report, as in "(after 3ms in state AUTH_REQ, 4
    /// identical error(s) suppressed)". The same error has the same text, and is logged once.
    static func constant(_ text: String) -> String {
        guard text.hasSuffix(")"), let range = text.firstRange(of: " (after ") else { return text }
        return String(text[..<range.lowerBound])
    }
}
