/// The switches of the Compass emulator.
struct CompassSwitches: EmulatorSwitches {
    static let altersTexts = false

    /// The server's zone.
    var zone = CompassZone()
    /// Seconds by which the server's clock is ahead; behind, if negative.
    var clockSkewSeconds = 0
    /// Milliseconds until queries show a row of history. Its time stamp is that of the change.
    var visibleAfterMs = 0
    /// Lifetime of a token.
    var tokenSecondsMax = 86_400
    /// Maximum number of rows per page.
    var pageRowsMax = 10_000
    /// A further page is the first one again.
    var ignoresPageNumber = false
    /// Fields of a record, and columns of a query that is made, come in another order than they have or were given in.
    var shufflesFields = false
    /// Rows of history have no number: a query with that column is refused.
    var hidesHistoryIDs = false
    /// All logins are rejected: passwords and tokens.
    var refusesLogins = false
    /// The status with which a proxy before the server responds to every call; 0: no proxy.
    var proxyStatus = 0

    func check() throws {
        try FaultSwitches.check(times: [
            visibleAfterMs, abs(clockSkewSeconds), tokenSecondsMax, pageRowsMax,
        ])
        guard proxyStatus == 0 || (300..<600).contains(proxyStatus) else {
            throw EmulatorError("a proxy's status is from 300 to 599, or 0 for none")
        }
        guard pageRowsMax > 0 else { throw EmulatorError("a page has 1 row or more") }
        guard abs(zone.offsetMinutes) <= 14 * 60 else {
            throw EmulatorError("a zone is at most 14 hours from UTC")
        }
    }
}
