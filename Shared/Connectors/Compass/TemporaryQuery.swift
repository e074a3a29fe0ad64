package import Essentials

/// The name of a query that is made for one reading and deleted after it. No two are the same, so that one which was
/// left over by a crash is in nobody's way; and it tells its age, so that it can be removed.
///
/// `fieldpost 2026-11-23T13:00:00.000Z 9b0f…`
package enum TemporaryQuery {
    private static let prefix = "fieldpost "

    /// A name nobody else takes.
    package static func name(at now: Timestamp) -> String {
        // 64 bits: two names of the same millisecond are not the same.
        let number = UInt64.random(in: .min ... .max)
        return prefix + now.description + " " + String(number, radix: 16)
    }

    /// When a query of such a name was made; `nil` for a name that is somebody else's.
    package static func madeAt(_ name: String) -> Timestamp? {
        guard name.hasPrefix(prefix) else { return nil }
        let words = name.dropFirst(prefix.count).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, UInt64(words[1], radix: 16) != nil else { return nil }
        return Timestamp(String(words[0]))
    }
}
