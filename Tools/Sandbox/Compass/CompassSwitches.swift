/// How the Compass sandbox behaves; `POST /sandbox/switches` changes those that are named.
struct CompassSwitches: Switches {
    var faults = FaultSwitches()
    /// The server's zone.
    var zone = CompassZone()
    /// How many seconds the server's clock is ahead; behind, when negative.
    var clockSkewSeconds = 0
    /// Milliseconds until queries show a row of history. Its time stamp is that of the change.
    var visibleAfterMs = 0
    /// How long a token is good for, and an edit session that nobody ends.
    var tokenSecondsMax = 86_400
    var sessionSecondsMax = 1_800
    /// Rows of a page, however many are asked for.
    var pageRowsMax = 10_000
    /// A further page is the first one again.
    var ignoresPageNumber = false
    /// Fields of a record, and columns of a query that is made, come in another order than they have or were given in.
    var shufflesFields = false
    /// Rows of history have no number: a query with that column is refused.
    var hidesHistoryIDs = false
    /// Nobody is let in: neither a password nor a token is accepted.
    var refusesLogins = false
    /// What something before the server answers to every call, in words that are not Compass's; 0: nothing is there.
    var proxyStatus = 0

    mutating func change(_ name: SwitchName, in values: KeyedDecodingContainer<SwitchName>) throws -> Bool {
        switch name.stringValue {
        case "zone": zone = try values.decode(CompassZone.self, forKey: name)
        case "clockSkewSeconds": clockSkewSeconds = try values.decode(Int.self, forKey: name)
        case "visibleAfterMs": visibleAfterMs = try values.decode(Int.self, forKey: name)
        case "tokenSecondsMax": tokenSecondsMax = try values.decode(Int.self, forKey: name)
        case "sessionSecondsMax": sessionSecondsMax = try values.decode(Int.self, forKey: name)
        case "pageRowsMax": pageRowsMax = try values.decode(Int.self, forKey: name)
        case "ignoresPageNumber": ignoresPageNumber = try values.decode(Bool.self, forKey: name)
        case "shufflesFields": shufflesFields = try values.decode(Bool.self, forKey: name)
        case "hidesHistoryIDs": hidesHistoryIDs = try values.decode(Bool.self, forKey: name)
        case "refusesLogins": refusesLogins = try values.decode(Bool.self, forKey: name)
        case "proxyStatus": proxyStatus = try values.decode(Int.self, forKey: name)
        default: return try faults.change(name, in: values)
        }
        return true
    }

    func check() throws {
        try faults.check()
        try FaultSwitches.check(times: [
            visibleAfterMs, abs(clockSkewSeconds), tokenSecondsMax, sessionSecondsMax, pageRowsMax,
        ])
        guard proxyStatus == 0 || (300..<600).contains(proxyStatus) else {
            throw SandboxProblem(message: "a proxy's status is from 300 to 599, or 0 for none")
        }
        guard pageRowsMax > 0 else { throw SandboxProblem(message: "a page has 1 row or more") }
        guard abs(zone.offsetMinutes) <= 14 * 60 else {
            throw SandboxProblem(message: "a zone is at most 14 hours from UTC")
        }
    }

    private enum CodingKeys: CodingKey {
        case zone, clockSkewSeconds, visibleAfterMs, tokenSecondsMax, sessionSecondsMax, pageRowsMax,
            ignoresPageNumber, shufflesFields, hidesHistoryIDs, refusesLogins, proxyStatus
    }

    /// All switches in one object.
    func encode(to encoder: any Encoder) throws {
        try faults.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(zone, forKey: .zone)
        try values.encode(clockSkewSeconds, forKey: .clockSkewSeconds)
        try values.encode(visibleAfterMs, forKey: .visibleAfterMs)
        try values.encode(tokenSecondsMax, forKey: .tokenSecondsMax)
        try values.encode(sessionSecondsMax, forKey: .sessionSecondsMax)
        try values.encode(pageRowsMax, forKey: .pageRowsMax)
        try values.encode(ignoresPageNumber, forKey: .ignoresPageNumber)
        try values.encode(shufflesFields, forKey: .shufflesFields)
        try values.encode(hidesHistoryIDs, forKey: .hidesHistoryIDs)
        try values.encode(refusesLogins, forKey: .refusesLogins)
        try values.encode(proxyStatus, forKey: .proxyStatus)
    }
}
