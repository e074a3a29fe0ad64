import Essentials
import HTTPClient

/// Checks that servers called over HTTP respond, with a valid certificate that does not expire soon, and the correct
/// time.
struct AddressCheck: DoctorCheck {
    /// The certificate authorities; the system's by default.
    var configuration = Client.Configuration()
    /// Absolute URLs; one request is sent to each server.
    let addresses: [String]

    private static let callMax = Duration.seconds(10)

    func findings() async -> [DoctorFinding] {
        var configuration = configuration
        configuration.readsCertificates = true
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        var findings: [DoctorFinding] = []
        for origin in Self.origins(addresses) {
            findings += await Self.findings(origin, client)
        }
        return findings
    }

    private static func findings(_ origin: String, _ client: Client) async -> [DoctorFinding] {
        let before = Timestamp.now()
        do {
            // The status is irrelevant: any response has a certificate and a date.
            let response = try await client.send(Request(origin + "/", connectMax: callMax, totalMax: callMax))
            let after = Timestamp.now()
            let time = response.headers["date"].flatMap { Timestamp.seconds(ofHTTPDate: $0) }
            return Self.findings(
                origin, end: response.certificateEnd, date: time.map(Int64.init), before: before, after: after)
        } catch {
            return [Self.finding(origin, error)]
        }
    }

    /// Returns the distinct origins (scheme, host and port) in order.
    static func origins(_ addresses: [String]) -> [String] {
        var seen: Set<String> = []
        return addresses.compactMap { address in
            let parts = address.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count >= 3, parts[0] == "http:" || parts[0] == "https:", !parts[2].isEmpty else { return nil }
            let origin = "\(parts[0])//\(parts[2])"
            return seen.insert(origin).inserted ? origin : nil
        }
    }

    // MARK: Findings

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
