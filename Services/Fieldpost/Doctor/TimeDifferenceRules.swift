import Essentials

/// Findings on the difference between another machine's clock and this one's.
enum TimeDifferenceRules {
    /// - Parameter ahead: The other clock minus this machine's.
    static func finding(_ name: String, _ ahead: Duration, warning: Duration, failure: Duration) -> DoctorFinding {
        let difference = ahead < .zero ? .zero - ahead : ahead
        if difference < warning { return .good(name, "within \(difference.shortText) of this machine's") }
        let seen = "\(difference.shortText) \(ahead < .zero ? "behind" : "ahead of") this machine's"
        let remedy = "synchronise both by NTP (timedatectl, chronyc tracking): tokens and leases depend on it"
        return difference < failure ? .warning(name, seen, do: remedy) : .failure(name, seen, do: remedy)
    }
}
