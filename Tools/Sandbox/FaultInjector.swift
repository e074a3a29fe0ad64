import Essentials
import FoundationEssentials

/// The fault of a write.
enum WriteFault {
    case none, lostAfterWrite, failedAfterWrite
    /// The response is delayed.
    case slowAfterWrite(milliseconds: Int)
    /// The response is 503 or missing, and the record becomes visible later.
    case late(milliseconds: Int, isAnswered: Bool)
}

/// An emulator's switches, counters and random numbers, which the seed determines.
struct FaultInjector<Own: EmulatorSwitches>: Sendable {
    var switches = Switches<Own>()
    private(set) var counts: [String: Int] = [:]
    private var numbers = SplitMix64(seed: 1)
    /// Writes that are not visible yet.
    var lateCommitsWaiting = 0

    /// Changes the switches that a JSON object names.
    mutating func change(by json: Data) throws -> Switches<Own> {
        let new = try switches.changed(by: json)
        if new.faults.seed != switches.faults.seed { numbers = SplitMix64(seed: new.faults.seed) }
        switches = new
        return new
    }

    mutating func count(_ kind: String, _ count: Int = 1) { if count > 0 { counts[kind, default: 0] += count } }

    private mutating func draw(_ rate: Double) -> Bool { rate > 0 && Double(numbers.next() >> 11) * 0x1p-53 < rate }

    /// Draws a fault by its counter of next calls, or by its rate.
    private mutating func draw(_ rate: Double, orNext next: WritableKeyPath<FaultSwitches, Int>) -> Bool {
        guard switches.faults[keyPath: next] > 0 else { return draw(rate) }
        switches.faults[keyPath: next] -= 1
        return true
    }

    /// - Returns: The status of a call that is not processed, 503 or 429, and the call's duration.
    mutating func drawCall(isRead: Bool) -> (status: Int?, milliseconds: Int) {
        let faults = switches.faults
        let isSlow = draw(faults.rateSlow)
        if isSlow { count("slow") }
        var status: Int?
        if draw(faults.rate503, orNext: \.next503) || isRead && draw(faults.rate503OnReads) {
            status = 503
        } else if draw(faults.rate429, orNext: \.next429) {
            status = 429
        }
        if let status { count("answered\(status)") }
        return (status, isSlow ? faults.slowMs : faults.latencyMs)
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
