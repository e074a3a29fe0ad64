package import Essentials

/// The name of a query that is created for one read and deleted afterwards. Names are unique, so that a query that a
/// crash left behind does not conflict, and contain the creation time, so that such queries can be removed.
///
/// `fieldpost 2026-11-23T13:00:00.000Z 9b0f…`
package enum TemporaryQuery {
    private static let prefix = "fieldpost "

    /// Returns a unique name.
    package static func name(at now: Timestamp) -> String {
        // 64 random bits distinguish names of the same millisecond.
        let number = UInt64.random(in: .min ... .max)
        return prefix + now.description + " " + String(number, radix: 16)
    }

    /// Returns the creation time of a query with such a name; `nil` for any other name.
    package static func madeAt(_ name: String) -> Timestamp? {
        guard name.hasPrefix(prefix) else { return nil }
        let parts = name.dropFirst(prefix.count).split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, UInt64(parts[1], radix: 16) != nil else { return nil }
        return Timestamp(String(parts[0]))
    }
}
