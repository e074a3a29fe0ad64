import FoundationEssentials

/// Seeds of random tests, printed so that a failure can be repeated; `SEED` gives one.
package enum Seeds {
    /// - Returns: Numbers that follow each other.
    package static func random(_ count: Int, for what: String) -> [UInt64] {
        let given = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) }
        let first = UInt64.random(in: 1...999_999)
        let seeds = given.map { [$0] } ?? (0..<UInt64(count)).map { first + $0 }
        print("\(what): seeds \(seeds)")
        return seeds
    }

    /// - Returns: The same numbers in each run, from 1 on, or the one that `SEED` gives.
    package static func fixed(_ count: Int, for what: String) -> [UInt64] {
        let given = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) }
        let seeds = given.map { [$0] } ?? Array(1...UInt64(count))
        print("\(what): seeds \(seeds)")
        return seeds
    }
}
