import Seeded

/// How a call goes before it is looked at.
struct CallFault: Equatable {
    enum Kind { case none, unavailable, tooManyRequests }

    var kind = Kind.none
    /// How long the call takes.
    var milliseconds = 0
    var isSlow = false
}

/// How a write goes.
enum WriteFault: Equatable {
    case none, lostAfterWrite, failedAfterWrite
    /// The answer comes after so many milliseconds.
    case slowAfterWrite(milliseconds: Int)
    /// The answer is 503, or none at all, and the record comes after so many milliseconds.
    case late(milliseconds: Int, isAnswered: Bool)
}

/// Draws faults, the same ones for the same seed.
struct FaultDice {
    private var numbers: SplitMix64

    init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    mutating func draw(_ rate: Double) -> Bool { rate > 0 && Double(numbers.next() >> 11) * 0x1p-53 < rate }

    mutating func call(_ switches: FaultSwitches, isRead: Bool) -> CallFault {
        let isSlow = draw(switches.rateSlow)
        let kind: CallFault.Kind =
            draw(switches.rate503) || isRead && draw(switches.rate503OnReads)
            ? .unavailable : draw(switches.rate429) ? .tooManyRequests : .none
        return CallFault(kind: kind, milliseconds: isSlow ? switches.slowMs : switches.latencyMs, isSlow: isSlow)
    }

    mutating func write(_ switches: FaultSwitches) -> WriteFault {
        if draw(switches.rateLostAfterWrite) { return .lostAfterWrite }
        if draw(switches.rate500AfterWrite) { return .failedAfterWrite }
        if draw(switches.rateSlowAfterWrite) { return .slowAfterWrite(milliseconds: switches.slowMs) }
        guard draw(switches.rateLateCommit) else { return .none }
        return .late(milliseconds: switches.lateCommitMs, isAnswered: draw(0.5))
    }
}
