import Essentials
import FoundationEssentials
import FoundationInternationalization

/// A cache of the IANA database's time zones by name.
struct TimeZoneCache {
    private var cached: [String: TimeZone?] = [:]

    /// Limit on cached names. When it is reached, the cache is cleared.
    private static let countMax = 1_000

    /// Returns the offset of a zone from UTC; `nil` if the name is unknown.
    mutating func zone(_ name: String) -> LocalTimeRule.Zone? {
        if cached.count > Self.countMax { cached = [:] }
        let zone = cached[name] ?? TimeZone(identifier: name)
        cached[name] = .some(zone)
        return zone.map { zone in
            { time in
                zone.secondsFromGMT(
                    for: Date(timeIntervalSince1970: Double(time.millisecondsSinceEpoch) / 1_000))
            }
        }
    }
}
