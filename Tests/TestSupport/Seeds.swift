import FoundationEssentials

/// Seeds of random tests, printed so that a failure can be reproduced; `SEED` sets one.
package enum Seeds {
    /// - Returns: Consecutive numbers.
    package static func random(_ count: Int, for what: String) -> [UInt64] {
        let given = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) }
        let first = UInt64.random(in: 1...999_999)
        let seeds = given.map { [$0] } ?? (0..<UInt64(count)).map { first + $0 }
        print("\(what): seeds \(seeds)")
        return seeds
    }
}
