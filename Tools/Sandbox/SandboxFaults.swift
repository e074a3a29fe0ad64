import Essentials

/// How a call goes before it is looked at.
struct CallFault {
    enum Kind { case none, unavailable, tooManyRequests }

    let kind: Kind
    /// How long the call takes.
    let milliseconds: Int
}

/// How a write goes.
enum WriteFault {
    case none, lostAfterWrite, failedAfterWrite
    /// The answer comes after so many milliseconds.
    case slowAfterWrite(milliseconds: Int)
    /// The answer is 503, or none at all, and the record comes after so many milliseconds.
    case late(milliseconds: Int, isAnswered: Bool)
}

/// How a stand-in of a back end behaves, what it has counted, and what it draws: the same for the same seed.
struct SandboxDials<Behaviour: Switches>: Sendable {
    var switches = Behaviour()
    private(set) var counts: [String: Int] = [:]
    private var numbers = SplitMix64(seed: 1)
    /// Writes that are not visible yet.
    var lateCommitsWaiting = 0

    mutating func patch(_ patch: SwitchesPatch<Behaviour>) throws -> Behaviour {
        let new = try patch.applied(to: switches)
        if new.faults.seed != switches.faults.seed { numbers = SplitMix64(seed: new.faults.seed) }
        switches = new
        return new
    }

    mutating func count(_ kind: String, _ count: Int = 1) { if count > 0 { counts[kind, default: 0] += count } }

    mutating func draw(_ rate: Double) -> Bool { rate > 0 && Double(numbers.next() >> 11) * 0x1p-53 < rate }

    /// Whether it is the turn of a fault that is to happen to the next calls, or chance's.
    private mutating func draw(_ rate: Double, orNext next: WritableKeyPath<FaultSwitches, Int>) -> Bool {
        guard switches.faults[keyPath: next] > 0 else { return draw(rate) }
        switches.faults[keyPath: next] -= 1
        return true
    }

    mutating func drawCall(isRead: Bool) -> CallFault {
        let faults = switches.faults
        let isSlow = draw(faults.rateSlow)
        if isSlow { count("slow") }
        let kind: CallFault.Kind =
            draw(faults.rate503, orNext: \.next503) || isRead && draw(faults.rate503OnReads)
            ? .unavailable : draw(faults.rate429, orNext: \.next429) ? .tooManyRequests : .none
        return CallFault(kind: kind, milliseconds: isSlow ? faults.slowMs : faults.latencyMs)
    }

    mutating func drawWrite() -> WriteFault {
        let faults = switches.faults
        if draw(faults.rateLostAfterWrite, orNext: \.nextLostAfterWrite) { return .lostAfterWrite }
        if draw(faults.rate500AfterWrite) { return .failedAfterWrite }
        if draw(faults.rateSlowAfterWrite) { return .slowAfterWrite(milliseconds: faults.slowMs) }
        guard draw(faults.rateLateCommit, orNext: \.nextLateCommit) else { return .none }
        return .late(milliseconds: faults.lateCommitMs, isAnswered: draw(0.5))
    }
}
