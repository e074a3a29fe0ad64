extension KafkaError {
    /// Returns an error's text without its variable part: librdkafka appends the time that the connection was in its
    /// state and the number of suppressed identical errors, as in "(after 3ms in state AUTH_REQ, 4 identical error(s)
    /// suppressed)". Identical errors then have identical texts and are logged once.
    static func constant(_ text: String) -> String {
        guard text.hasSuffix(")"), let range = text.firstRange(of: " (after ") else { return text }
        return String(text[..<range.lowerBound])
    }
}
