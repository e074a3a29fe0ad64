import FoundationEssentials

/// Seeds of random tests, printed so that a failure can be reproduced.
///
/// `SEED` sets the only one. `deploy/test --thorough` runs ten times as many (`SEED_FACTOR`).
package enum Seeds {
    /// - Returns: Numbers 1,000 apart, because a scenario of several seeds uses the following ones.
    package static func random(_ count: Int, for what: String) -> [UInt64] {
        func number(_ name: String) -> UInt64? { ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } }
        let first = UInt64.random(in: 1...999_999)
        let all = (0..<UInt64(count) * (number("SEED_FACTOR") ?? 1)).map { first + $0 * 1_000 }
        let seeds = number("SEED").map { [$0] } ?? all
        print("\(what): seeds \(seeds)")
        return seeds
    }
}
