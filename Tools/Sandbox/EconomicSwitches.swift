import Essentials
import Model

/// How the e-conomic sandbox behaves; `POST /sandbox/switches` changes those that are named.
struct EconomicSwitches: Switches {
    var faults = FaultSwitches()
    var texts = TextSwitches()
    /// The agreement has revoked the grant: every call is answered 401.
    var isRevoked = false
    /// No time entry on or before this day may be created, changed or deleted: the accounting period is closed.
    var lockedThrough: Day?
    /// Rows of a listing's page.
    var pageItemsMax = 1000
    /// The last page of a listing names the first one as the next.
    var pagesAreCircular = false
    /// How many seconds the clock behind `lastUpdated` is ahead; behind, when negative.
    var clockSkewSeconds = 0
    /// How many seconds the clock behind the answers' `Date` is ahead; behind, when negative.
    var dateSkewSeconds = 0
    /// Milliseconds until a listing shows a change. Reading a single entry shows it at once.
    var visibleAfterMs = 0
    /// Before each of so many PUTs somebody saves the entry without changing it, so that its version is another.
    var touchesBeforePut = 0
    /// Before each of so many PUTs somebody changes the entry's hours.
    var changesBeforePut = 0

    mutating func change(_ name: SwitchName, in values: KeyedDecodingContainer<SwitchName>) throws -> Bool {
        switch name.stringValue {
        case "isRevoked": isRevoked = try values.decode(Bool.self, forKey: name)
        case "lockedThrough": lockedThrough = try values.decodeIfPresent(Day.self, forKey: name)
        case "pageItemsMax": pageItemsMax = try values.decode(Int.self, forKey: name)
        case "pagesAreCircular": pagesAreCircular = try values.decode(Bool.self, forKey: name)
        case "clockSkewSeconds": clockSkewSeconds = try values.decode(Int.self, forKey: name)
        case "dateSkewSeconds": dateSkewSeconds = try values.decode(Int.self, forKey: name)
        case "visibleAfterMs": visibleAfterMs = try values.decode(Int.self, forKey: name)
        case "touchesBeforePut": touchesBeforePut = try values.decode(Int.self, forKey: name)
        case "changesBeforePut": changesBeforePut = try values.decode(Int.self, forKey: name)
        default: return try texts.change(name, in: values) || faults.change(name, in: values)
        }
        return true
    }

    func check() throws {
        try faults.check()
        try texts.check()
        try FaultSwitches.check(times: [
            visibleAfterMs, abs(clockSkewSeconds), abs(dateSkewSeconds), touchesBeforePut, changesBeforePut,
        ])
        guard (1...1000).contains(pageItemsMax) else { throw SandboxProblem(message: "a page has 1 to 1000 rows") }
    }

    private enum CodingKeys: CodingKey {
        case isRevoked, lockedThrough, pageItemsMax, pagesAreCircular, clockSkewSeconds, dateSkewSeconds,
            visibleAfterMs, touchesBeforePut, changesBeforePut
    }

    /// All switches in one object.
    func encode(to encoder: any Encoder) throws {
        try faults.encode(to: encoder)
        try texts.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(isRevoked, forKey: .isRevoked)
        try values.encodeIfPresent(lockedThrough, forKey: .lockedThrough)
        try values.encode(pageItemsMax, forKey: .pageItemsMax)
        try values.encode(pagesAreCircular, forKey: .pagesAreCircular)
        try values.encode(clockSkewSeconds, forKey: .clockSkewSeconds)
        try values.encode(dateSkewSeconds, forKey: .dateSkewSeconds)
        try values.encode(visibleAfterMs, forKey: .visibleAfterMs)
        try values.encode(touchesBeforePut, forKey: .touchesBeforePut)
        try values.encode(changesBeforePut, forKey: .changesBeforePut)
    }
}
