import Essentials

/// From where on the history is read. Times are seconds of the tracker's clock, which shows local time: nobody tells
/// its zone, and it may be wrong.
enum WatermarkRule {
    /// Each round reads so much again: in autumn an hour comes twice, a clock may be set back, and a row may be seen
    /// later than others that were written after it.
    static let windowSeconds = 90 * 60
    /// How long after others' a person's own round may be read, and still know what others have seen.
    static let lateSecondsMax = 86_400
    /// For how long after its last round was begun what the account has read counts as read by all: each person's
    /// next round comes an interval later, or two when they are late.
    static func accountSeconds(interval seconds: Int32) -> Int { max(windowSeconds, 2 * Int(seconds)) }

    /// The most that a clock on Earth is ahead of UTC (14 hours), and one more that it may be wrong by.
    static let aheadSecondsMax = 15 * 3_600
    /// The most that a clock on Earth is behind UTC (12 hours), and one more that it may be wrong by.
    static let behindSecondsMax = 13 * 3_600

    /// A round reads what is later than this.
    static func since(_ watermark: Int) -> Int { watermark - windowSeconds }

    /// The watermark of a tracker that was never read: before anything that happens from now on, in whatever zone.
    static func beginning(now: Timestamp) -> Int { seconds(now) - behindSecondsMax }

    /// Where a reading begins, and what it has reached when nothing newer is found.
    struct Start: Equatable {
        /// `nil`: nothing was read before.
        let time: Int?
        let reached: Int
    }

    /// Of a person's own login: from their own watermark on, or from the account's where it has read for them until a
    /// short while ago. Whatever anybody had seen when it begins, it has seen when it ends.
    ///
    /// - Parameters:
    ///   - own: The person's watermark.
    ///   - account: That of the environment's account, and of nobody else: what others have read since was theirs.
    ///     `nil`: it has not read for a while.
    ///   - everybodys: The newest time that anybody has read.
    static func start(own: Int?, account: Int?, everybodys: Int?, now: Timestamp) -> Start {
        let time = [own, account].compactMap(\.self).max()
        return Start(time: time, reached: max(time ?? beginning(now: now), everybodys ?? .min))
    }

    /// Of the environment's account: from where the last of those was who have read with their own logins until it
    /// came, as long as what the others have seen is known. Who has read nothing since an account went is where that
    /// was.
    ///
    /// - Parameters:
    ///   - account: Its watermark; `nil`: it has not read for a while.
    ///   - ownOldest: The oldest of people's watermarks; `nil`: there are none any more.
    ///   - everybodys: The newest time that anybody has read.
    static func start(account: Int?, ownOldest: Int?, everybodys: Int?, now: Timestamp) -> Start {
        guard let everybodys else { return Start(time: nil, reached: beginning(now: now)) }
        let oldest = [account, ownOldest, everybodys].compactMap(\.self).min() ?? everybodys
        return Start(time: max(oldest, everybodys - lateSecondsMax), reached: everybodys)
    }

    /// Whether a time can be by a clock of which anything is to be concluded. One far ahead would hide all that is
    /// written until then.
    static func isPlausible(_ time: Int, now: Timestamp) -> Bool { time <= seconds(now) + aheadSecondsMax }

    /// The newest of what was read, and of what was read before.
    static func newest(_ newest: Int?, of times: some Sequence<Int>, now: Timestamp) -> Int? {
        (times.filter { isPlausible($0, now: now) } + [newest].compactMap(\.self)).max()
    }

    private static func seconds(_ time: Timestamp) -> Int {
        floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000)
    }
}
