import Essentials
import Model

/// The switches of the e-conomic emulator.
struct EconomicSwitches: EmulatorSwitches {
    /// The agreement has revoked the grant: every call gets 401.
    var isRevoked = false
    /// No time entry on or before this day may be created, changed or deleted: the accounting period is closed.
    var lockedThrough: Day?
    /// Rows of a listing's page.
    var pageItemsMax = 1000
    /// The last page of a listing names the first one as the next.
    var pagesAreCircular = false
    /// Seconds by which the clock of `lastUpdated` is ahead; behind, if negative.
    var clockSkewSeconds = 0
    /// Seconds by which the clock of the responses' `Date` is ahead; behind, if negative.
    var dateSkewSeconds = 0
    /// Milliseconds until a listing shows a change. Reading a single entry shows it at once.
    var visibleAfterMs = 0
    /// Number of next PUTs before which another user saves the entry without a change, so that its version differs.
    var touchesBeforePut = 0
    /// Number of next PUTs before which another user changes the entry's hours.
    var changesBeforePut = 0

    func check() throws {
        try FaultSwitches.check(times: [
            visibleAfterMs, abs(clockSkewSeconds), abs(dateSkewSeconds), touchesBeforePut, changesBeforePut,
        ])
        guard (1...1000).contains(pageItemsMax) else { throw EmulatorError("a page has 1 to 1000 rows") }
    }
}
