import Essentials

/// When certificates end, as libcurl tells it of OpenSSL's: `Nov 25 02:11:00 2026 GMT`.
enum CertificateEnd {
    /// The first end in a chain.
    ///
    /// - Parameter text: The end of each certificate of the chain; `nil` beyond the last one.
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

    /// The parts are those of an HTTP date in another order.
    private static func seconds(_ text: String) -> Int? {
        let parts = text.split(separator: " ")
        guard parts.count == 5 else { return nil }
        return Timestamp.seconds(ofHTTPDate: "Day, \(parts[1]) \(parts[0]) \(parts[3]) \(parts[2]) \(parts[4])")
    }
}
