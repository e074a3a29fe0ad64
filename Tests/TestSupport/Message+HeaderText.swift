package import Kafka

extension Message {
    /// The last header with this name as text; bytes that are not UTF-8 are replaced by U+FFFD.
    package func headerText(_ name: StaticString) -> String? {
        header(name).map { String(decoding: $0, as: UTF8.self) }
    }
}
