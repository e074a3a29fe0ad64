import Essentials
import TestSupport
import Testing

/// The engine of a worker (`WorkScheduler`, the one that `Worker` runs) in a simulated world: two workers of one group,
/// devices that edit, messages that come again, calls that are lost, late, refused or never made, a back end that is
/// away or asks to be left alone, locks, rows that PostgreSQL refuses, PostgreSQL away, workers that crash or stop,
/// partitions that move, transport that is lost.
///
/// Always:
/// 1. work that is to be done is known to somebody, whatever crashes: as a message that is not finished, or as a parked
///    key;
/// 2. an edit is decided as one, or parked, before its message is finished; and what is parked is decided as edited,
///    whatever its events say;
/// 3. a worker calls one key once at a time, and as many of an environment as it may; it holds as many keys as it may.
///
/// At rest, which is reached:
/// 4. every version that the back end is said to have was written to it once;
/// 5. nothing is parked, in flight or unread.
@Suite struct SchedulerSimulationTests {
    private static let stepCount = 4_000
    private static let activeCount = 500
    private static let worldCount = 10

    @Test(arguments: Seeds.random(8, for: "scheduler")) func nothingIsLostOrDoneTwice(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var counts: [String: Int] = [:]
        for worldSeed in (0..<Self.worldCount).map({ _ in random.next() }) {
            let world = try Self.run(seed: worldSeed, mistake: nil)
            counts.merge(world.counts, uniquingKeysWith: +)
        }
        for what in [
            "rests", "messages", "known events", "decisions", "missed", "calls", "crashes", "moves", "lost transports",
            "failures", "no edits",
            "refused", "dead keys", "opened circuits", "closed circuits", "left alone", "locked environments",
            "unlocked environments",
        ] {
            #expect(counts[what, default: 0] > 0, "seed \(seed): \(what)")
        }
    }

    /// The simulation can fail: each mistake is found, by the seeds from 1 on.
    @Test(arguments: Mistake.allCases) func aMistakeIsFound(mistake: Mistake) {
        for seed in 1...60 as ClosedRange<UInt64> {
            if (try? Self.run(seed: seed, mistake: mistake)) == nil { return }
        }
        Issue.record("\(mistake) was not found")
    }

    private static func run(seed: UInt64, mistake: Mistake?) throws -> SchedulerSimulation {
        var world = try SchedulerSimulation(seed: seed, mistake: mistake)
        do {
            for step in 1...stepCount {
                try world.step()
                if step % activeCount == 0 { try world.rest() }
            }
        } catch {
            throw SimulationFailure(description: "seed \(seed): \(error)")
        }
        return world
    }
}
