import Essentials
import FoundationEssentials
import FoundationInternationalization

/// The time zones of the IANA database, by their names.
struct Zones {
    private var known: [String: TimeZone?] = [:]

    /// Names that are remembered; then they are looked up anew.
    private static let countMax = 1_000

    /// How far a zone is ahead of UTC; `nil`: there is none of this name.
    mutating func zone(_ name: String) -> LocalTimeRule.Zone? {
        if known.count > Self.countMax { known = [:] }
        let zone = known[name] ?? TimeZone(identifier: name)
        known[name] = .some(zone)
        return zone.map { zone in
            { time in
                zone.secondsFromGMT(
                    for: Date(timeIntervalSince1970: Double(time.millisecondsSinceEpoch) / 1_000))
            }
        }
    }
}
