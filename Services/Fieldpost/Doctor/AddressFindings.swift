import Essentials
import HTTPClient

/// What a server's certificate, its time and its silence mean.
enum AddressFindings {
    /// A certificate that ends sooner should have been renewed: authorities that renew by themselves do at 30 days.
    private static let certificateWarning = Duration.seconds(21 * 86_400)
    private static let timeWarning = Duration.seconds(5)
    /// Tokens are refused beyond (`token.skew.max`).
    private static let timeFailure = Duration.seconds(60)

    /// - Parameters:
    ///   - end: When the first certificate of the chain ends; `nil` when nothing is known of it.
    ///   - date: Seconds since 1970, as the answer said.
    ///   - before: When it was asked, and `after`, when it answered.
    static func findings(
        _ origin: String, end: Timestamp?, date: Int64?, before: Timestamp, after: Timestamp
    ) -> [DoctorFinding] {
        [certificate(origin, end, at: after), time(origin, date, before, after)].compactMap(\.self)
    }

    private static func certificate(_ origin: String, _ end: Timestamp?, at now: Timestamp) -> DoctorFinding? {
        let name = "\(origin): certificate"
        guard origin.hasPrefix("https:") else { return plain(origin) }
        guard let end else { return .good(name, "verified; when it ends is not told") }
        let left = Duration.milliseconds(end.millisecondsSinceEpoch - now.millisecondsSinceEpoch)
        let seen = "ends \(end.day), in \(left.shortText)"
        guard left < certificateWarning else { return .good(name, "verified; \(seen)") }
        return .warning(name, seen, do: "renew it, and have the server read the new one")
    }

    private static func plain(_ origin: String) -> DoctorFinding? {
        let host = origin.dropFirst("http://".count)
        if ["localhost", "127.0.0.1", "[::1]"].contains(where: { host == $0 || host.hasPrefix("\($0):") }) {
            return nil
        }
        return .warning(
            "\(origin): certificate", "it is called without TLS", do: "use https: tokens and passwords go over it")
    }

    private static func time(
        _ origin: String, _ date: Int64?, _ before: Timestamp, _ after: Timestamp
    ) -> DoctorFinding {
        let name = "\(origin): time"
        guard let date else { return .good(name, "answers; it does not tell its time") }
        // The second that was told began up to a second before it was told.
        let (first, last) = (
            date * 1_000 - after.millisecondsSinceEpoch, date * 1_000 + 999 - before.millisecondsSinceEpoch
        )
        let ahead = first > 0 ? first : min(0, last)
        return TimeDifferenceRules.finding(name, .milliseconds(ahead), warning: timeWarning, failure: timeFailure)
    }

    /// Why there was no answer.
    static func finding(_ origin: String, _ error: HTTPError) -> DoctorFinding {
        if error.isCertificateRefused {
            return .failure(
                "\(origin): certificate", error.message,
                do: "renew it, have the server send the whole chain, or add its authority to this system's "
                    + "(update-ca-certificates)")
        }
        return .failure(
            "\(origin): reachable", error.message,
            do: "see that it runs, and that name, port and firewall let it be reached")
    }
}
