import Essentials

/// What it means when another machine's time differs from this one's.
enum TimeDifferenceRules {
    /// - Parameter ahead: By how much the other one is ahead of this machine.
    static func finding(
        _ name: String, _ ahead: Duration, warning: Duration, failure: Duration
    ) -> DoctorFinding {
        let difference = ahead < .zero ? .zero - ahead : ahead
        if difference < warning { return .good(name, "as this machine's, by \(difference.shortText) or less") }
        let seen = "\(difference.shortText) \(ahead < .zero ? "behind" : "ahead of") this machine's"
        let remedy = "have both set by NTP (timedatectl, chronyc tracking): tokens and leases go by it"
        return difference < failure ? .warning(name, seen, do: remedy) : .failure(name, seen, do: remedy)
    }
}
