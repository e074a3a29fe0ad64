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
            return AddressFindings.findings(
                origin, end: response.certificateEnd, date: time.map(Int64.init), before: before, after: after)
        } catch {
            return [AddressFindings.finding(origin, error)]
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
}
