/// The position of each object up to which this worker has decided. An event at or below it reports a state that the
/// worker has already read or written.
///
/// Deciding such an event again is harmless, so entries expire after `ageMax`, since an operator may request
/// reprocessing, or earlier if there are too many. A value without a clock.
struct DecisionHistory: Sendable {
    static let ageMax = Duration.seconds(60)
    static let countMax = 20_000

    private struct Entry {
        let position: Int64
        let at: ContinuousClock.Instant
    }

    private var recent: [WorkKey: Entry] = [:]
    private var earlier: [WorkKey: Entry] = [:]
    private var rotatedAt: ContinuousClock.Instant

    init(now: ContinuousClock.Instant) { rotatedAt = now }

    mutating func record(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) {
        rotate(now: now)
        recent[key] = Entry(position: max(position, entry(key, now: now)?.position ?? 0), at: now)
    }

    mutating func covers(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) -> Bool {
        rotate(now: now)
        return entry(key, now: now).map { position <= $0.position } ?? false
    }

    private func entry(_ key: WorkKey, now: ContinuousClock.Instant) -> Entry? {
        (recent[key] ?? earlier[key]).flatMap { now - $0.at < Self.ageMax ? $0 : nil }
    }

    private mutating func rotate(now: ContinuousClock.Instant) {
        guard now - rotatedAt >= Self.ageMax || recent.count >= Self.countMax else { return }
        earlier = recent
        recent = [:]
        rotatedAt = now
    }
}
