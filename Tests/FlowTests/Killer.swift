import Seeded
import Suite

/// Kills parts of a suite at random moments, with signal 9, and starts each again at once.
struct Killer: Sendable {
    let suite: Suite
    let parts: [Suite.Part]
    let seed: UInt64
    /// The pause between two kills is up to twice as long.
    let pause: Duration

    /// Kills `count` times, every part in turn in a random order.
    func kill(_ count: Int) async throws {
        var random = SplitMix64(seed: seed)
        var turn: [Suite.Part] = []
        for _ in 0..<count {
            try await Task.sleep(for: pause * Double.random(in: 0.2...1.8, using: &random))
            if turn.isEmpty { turn = parts.shuffled(using: &random) }
            try await suite.restart(turn.removeLast())
        }
    }

    /// A seed for this run, printed so that a failure can be repeated; `FLOW_SEED` gives one.
    static func printedSeed(_ what: String, given: String?) -> UInt64 {
        let seed = given.flatMap { UInt64($0) } ?? .random(in: 1...999_999)
        print("\(what): seed \(seed)")
        return seed
    }
}
