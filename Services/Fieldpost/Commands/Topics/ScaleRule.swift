/// The effect of more partitions on the assignment of keys.
enum ScaleRule {
    /// Returns the percentage of keys that move to another partition.
    ///
    /// A key is on partition `hash mod count`. It stays if both remainders are equal: for as many of `after` hashes as
    /// their greatest common divisor.
    static func percentMoved(from before: Int32, to after: Int32) -> Int32 {
        var (divisor, rest) = (after, before)
        while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
        return (after - divisor) * 100 / after
    }
}
