import Essentials
import HTTPClient

/// Findings on a server's certificate and time, and on a missing response.
enum AddressFindings {
    /// Remaining validity below which there is a warning: authorities that renew automatically do so at 30 days.
    private static let certificateWarning = Duration.seconds(21 * 86_400)
    private static let timeWarning = Duration.seconds(5)
    /// Tokens are rejected beyond it (`token.skew.max`).
    private static let timeFailure = Duration.seconds(60)

    /// - Parameters:
    ///   - end: The expiry of the chain's first certificate; `nil` if unknown.
    ///   - date: The response's Date header, in seconds since 1970.
    ///   - before: The time of the request; `after`, of the response.
    static func findings(
        _ origin: String, end: Timestamp?, date: Int64?, before: Timestamp, after: Timestamp
    ) -> [DoctorFinding] {
        [certificate(origin, end, at: after), time(origin, date, before, after)].compactMap(\.self)
    }

    private static func certificate(_ origin: String, _ end: Timestamp?, at now: Timestamp) -> DoctorFinding? {
        let name = "\(origin): certificate"
        guard origin.hasPrefix("https:") else { return plain(origin) }
        guard let end else { return .good(name, "verified; its expiry is unknown") }
        let left = Duration.milliseconds(end.millisecondsSinceEpoch - now.millisecondsSinceEpoch)
        let seen = "expires \(end.day), in \(left.shortText)"
        guard left < certificateWarning else { return .good(name, "verified; \(seen)") }
        return .warning(name, seen, do: "renew it, and reload it in the server")
    }

    private static func plain(_ origin: String) -> DoctorFinding? {
        let host = origin.dropFirst("http://".count)
        if ["localhost", "127.0.0.1", "[::1]"].contains(where: { host == $0 || host.hasPrefix("\($0):") }) {
            return nil
        }
        return .warning(
            "\(origin): certificate", "called without TLS", do: "use https: requests carry tokens and passwords")
    }

    private static func time(
        _ origin: String, _ date: Int64?, _ before: Timestamp, _ after: Timestamp
    ) -> DoctorFinding {
        let name = "\(origin): time"
        guard let date else { return .good(name, "responds without a Date header") }
        // The Date header is rounded down to a second.
        let (first, last) = (
            date * 1_000 - after.millisecondsSinceEpoch, date * 1_000 + 999 - before.millisecondsSinceEpoch
        )
        let ahead = first > 0 ? first : min(0, last)
        return TimeDifferenceRules.finding(name, .milliseconds(ahead), warning: timeWarning, failure: timeFailure)
    }

    /// The finding for a missing response.
    static func finding(_ origin: String, _ error: HTTPError) -> DoctorFinding {
        if error.isCertificateRefused {
            return .failure(
                "\(origin): certificate", error.message,
                do: "renew it, configure the server to send the complete chain, or add its authority to this system "
                    + "(update-ca-certificates)")
        }
        return .failure(
            "\(origin): reachable", error.message, do: "check that the server runs, and check name, port and firewall")
    }
}
