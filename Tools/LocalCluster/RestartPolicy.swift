/// When a process that has ended is started again: after a second, then each time after twice as long, 30 seconds at
/// most; after one second again when it had run for more than a minute.
package struct RestartPolicy: Equatable, Sendable {
    package static let waitMin = Duration.seconds(1)
    package static let waitMax = Duration.seconds(30)
    /// A process that ran for longer than this was well.
    package static let steadyAfter = Duration.seconds(60)

    private var wait = waitMin

    package init() {}

    /// The process has ended.
    ///
    /// - Parameter running: How long it ran.
    /// - Returns: How long to wait before it is started again.
    package mutating func ended(after running: Duration) -> Duration {
        if running > Self.steadyAfter { wait = Self.waitMin }
        defer { wait = min(wait * 2, Self.waitMax) }
        return wait
    }
}
