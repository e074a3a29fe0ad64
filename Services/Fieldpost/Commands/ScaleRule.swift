/// What more partitions mean for keys.
enum ScaleRule {
    /// Of 100 keys, how many are on another partition afterwards.
    ///
    /// A key is on partition `hash mod count`: it stays where both remainders are the same, which of `after` hashes are
    /// as many as the greatest common divisor.
    static func percentMoved(from before: Int32, to after: Int32) -> Int32 {
        var (divisor, rest) = (after, before)
        while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
        return (after - divisor) * 100 / after
    }
}
