package import Kafka

extension Message {
    /// Whether the value is null: the object of the key was deleted. An empty value is not a tombstone.
    package var isTombstone: Bool { withValue { _ in } == nil }

    /// A copy of the value; `nil` for a tombstone.
    package var value: [UInt8]? { withValue { $0.copied } }

    /// A copy of the key.
    package var key: [UInt8]? { withKey { $0.copied } }

    /// Returns a copy of the last header with this name; `nil` if there is none.
    package func header(_ name: StaticString) -> [UInt8]? {
        var copy: [UInt8]?
        forEachHeader { if $0 == name { copy = $1.copied } }
        return copy
    }

    /// The last header with this name as text; bytes that are not UTF-8 are replaced by U+FFFD.
    package func headerText(_ name: StaticString) -> String? {
        header(name).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension RawSpan {
    /// A copy of the bytes.
    package var copied: [UInt8] { unsafe withUnsafeBytes { unsafe Array($0) } }
}
