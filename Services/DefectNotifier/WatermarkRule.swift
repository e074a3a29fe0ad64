import Essentials

/// The start and end of history polls. Times are in seconds of the tracker's clock, which shows local time. Its zone is
/// unknown, and it may be wrong.
enum WatermarkRule {
    /// The time before the watermark that each poll reads again, because an hour repeats in autumn, a clock may be set
    /// back, and a row may become visible after rows that were written later.
    static let windowSeconds = 90 * 60
    /// Maximum lateness of a person's own poll: rows that others have processed are stored for this long.
    static let lateSecondsMax = 86_400
    /// Returns the time after the start of the account's last poll during which its watermark counts for all people:
    /// each person's next poll starts within an interval, or two if polls are late.
    static func accountSeconds(interval seconds: Int32) -> Int { max(windowSeconds, 2 * Int(seconds)) }

    /// Maximum lead of a local clock over UTC: 14 hours, and 1 hour of error.
    static let aheadSecondsMax = 15 * 3_600
    /// Maximum lag of a local clock behind UTC: 12 hours, and 1 hour of error.
    static let behindSecondsMax = 13 * 3_600

    /// Returns the time after which a poll reads.
    static func since(_ watermark: Int) -> Int { watermark - windowSeconds }

    /// Returns the watermark of a tracker that was never read: before all future events, in any time zone.
    static func initialWatermark(now: Timestamp) -> Int { seconds(now) - behindSecondsMax }

    /// The start of a poll.
    struct Start: Equatable {
        /// The watermark to read from; `nil`: nothing was read before.
        let time: Int?
        /// The lowest watermark after the poll.
        let watermarkMin: Int
    }

    /// Returns the start of a poll with a person's own login: from their own watermark, or from the account's if the
    /// account has polled recently. The poll covers everything that other polls had read when it started.
    ///
    /// - Parameters:
    ///   - own: The person's watermark.
    ///   - account: The watermark of the environment's account alone. Polls with own logins since then covered only
    ///     their own people. `nil`: the account has not polled recently.
    ///   - environment: The newest watermark of all logins.
    static func start(own: Int?, account: Int?, environment: Int?, now: Timestamp) -> Start {
        let time = [own, account].compactMap(\.self).max()
        return Start(time: time, watermarkMin: max(time ?? initialWatermark(now: now), environment ?? .min))
    }

    /// Returns the start of a poll with the environment's account: from the oldest watermark of people's own logins,
    /// limited by the time for which processed rows are stored. People who have not polled since an earlier account was
    /// removed continue from that account's watermark.
    ///
    /// - Parameters:
    ///   - account: The account's watermark; `nil`: it has not polled recently.
    ///   - oldestOwnWatermark: The oldest of people's own watermarks; `nil`: there are none.
    ///   - environment: The newest watermark of all logins.
    static func start(account: Int?, oldestOwnWatermark: Int?, environment: Int?, now: Timestamp) -> Start {
        guard let environment else { return Start(time: nil, watermarkMin: initialWatermark(now: now)) }
        let oldest = [account, oldestOwnWatermark, environment].compactMap(\.self).min() ?? environment
        return Start(time: max(oldest, environment - lateSecondsMax), watermarkMin: environment)
    }

    /// Whether a time is plausible. A watermark far in the future would hide all rows until then.
    static func isPlausible(_ time: Int, now: Timestamp) -> Bool { time <= seconds(now) + aheadSecondsMax }

    /// Returns the newest plausible time of a page and the earlier pages.
    static func newest(_ newest: Int?, of times: some Sequence<Int>, now: Timestamp) -> Int? {
        (times.filter { isPlausible($0, now: now) } + [newest].compactMap(\.self)).max()
    }

    private static func seconds(_ time: Timestamp) -> Int {
        floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000)
    }
}
