import Essentials

/// Parses the expiry of certificates in the format of OpenSSL and libcurl: `Nov 25 02:11:00 2026 GMT`.
enum CertificateEnd {
    /// Returns the earliest expiry in a chain.
    ///
    /// - Parameter text: The expiry of each certificate of the chain; `nil` after the last one.
    static func first(_ text: (Int32) -> String?) -> Timestamp? {
        var first: Timestamp?
        var index: Int32 = 0
        while let end = text(index) {
            index += 1
            guard let seconds = seconds(end) else { continue }
            let time = Timestamp(millisecondsSinceEpoch: Int64(seconds) * 1_000)
            first = min(first ?? time, time)
        }
        return first
    }

    /// Reorders the components into an HTTP date.
    private static func seconds(_ text: String) -> Int? {
        let parts = text.split(separator: " ")
        guard parts.count == 5 else { return nil }
        return Timestamp.seconds(ofHTTPDate: "Day, \(parts[1]) \(parts[0]) \(parts[3]) \(parts[2]) \(parts[4])")
    }
}
