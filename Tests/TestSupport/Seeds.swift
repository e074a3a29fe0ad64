import FoundationEssentials

/// Seeds of random tests, printed so that a failure can be reproduced.
///
/// `SEED` sets the only one. `deploy/test --thorough` runs ten times as many (`SEED_FACTOR`).
package enum Seeds {
    /// Whether `deploy/test --thorough` runs.
    package static var isThorough: Bool { (number("SEED_FACTOR") ?? 1) > 1 }

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// - Returns: Numbers 1,000 apart, because a scenario of several seeds uses the following ones.
    ///
    /// - Parameter thorough: The count for `deploy/test --thorough`; `nil`: ten times `count`.
    package static func random(_ count: Int, thorough: Int? = nil, for what: String) -> [UInt64] {
        let first = UInt64.random(in: 1...999_999)
        let factor = number("SEED_FACTOR") ?? 1
        let total = factor == 1 ? UInt64(count) : factor * UInt64(thorough ?? count * 10) / 10
        let all = (0..<total).map { first + $0 * 1_000 }
        let seeds = number("SEED").map { [$0] } ?? all
        print("\(what): seeds \(seeds)")
        return seeds
    }
}
