import Essentials

/// The best that anybody can do against a back end with faults who begins no call during a `Retry-After` and lets every
/// unknown outcome settle: the moment there is a place it is used, deciding and recording take no time.
struct BadDayModel {
    var entryCount: Int
    /// Calls under way at a time.
    var placesMax: Int
    /// In seconds, as all times here.
    var latency: Double
    var retryAfter: Double
    var settle: Double
    var rate503: Double
    var rate429: Double
    /// Writes that are done, and whose answer is lost.
    var rateLost: Double

    private enum Step { case write, readBack, find(isThere: Bool) }

    private struct Call {
        var at: Double
        let step: Step
    }

    /// When so many entries were done: medians, since chance has a large part in it.
    func medians(at counts: [Int]) -> [Double] {
        let runs = (1...101).map { run(seed: $0) }
        return counts.map { count in runs.map { $0[count - 1] }.sorted()[runs.count / 2] }
    }

    /// When each entry was done, in order.
    func run(seed: UInt64) -> [Double] {
        var random = SplitMix64(seed: seed)
        func happens(_ rate: Double) -> Bool { Double(random.next() >> 11) * 0x1p-53 < rate }
        // First come first served: both are kept in the order of their times.
        var waiting = (0..<entryCount).map { _ in Call(at: 0, step: .write) }
        var underWay: [Call] = []
        var (now, calledFrom, done) = (0.0, 0.0, [Double]())
        func wait(_ call: Call) {
            waiting.insert(call, at: waiting.firstIndex { $0.at > call.at } ?? waiting.endIndex)
        }
        while done.count < entryCount {
            if let first = waiting.first, first.at <= now, calledFrom <= now, underWay.count < placesMax {
                underWay.append(Call(at: now + latency, step: waiting.removeFirst().step))
                continue
            }
            let start = underWay.count < placesMax ? waiting.first.map { max($0.at, calledFrom) } : nil
            if let end = underWay.first?.at, end <= start ?? .infinity {
                now = end
                let call = underWay.removeFirst()
                // A call that is answered 503 or 429 was not processed; only of a read is that sure.
                let is503 = happens(rate503)
                if !is503, happens(rate429) {
                    calledFrom = max(calledFrom, now + retryAfter)
                    wait(Call(at: now + retryAfter, step: call.step))
                    continue
                }
                switch call.step {
                case .write where is503: wait(Call(at: now + settle, step: .find(isThere: false)))
                case .write where happens(rateLost): wait(Call(at: now + settle, step: .find(isThere: true)))
                // As here, who has written reads back, whatever others are told meanwhile.
                case .write: underWay.append(Call(at: now + latency, step: .readBack))
                case .readBack where is503, .find where is503: wait(Call(at: now, step: call.step))
                case .readBack, .find(isThere: true): done.append(now)
                case .find(isThere: false): wait(Call(at: now, step: .write))
                }
            } else if let start {
                now = start
            }
        }
        return done
    }
}
