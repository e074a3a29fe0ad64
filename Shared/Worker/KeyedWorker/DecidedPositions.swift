/// Up to which position of an object a worker has decided: an event that is not above it tells of what the worker saw,
/// or wrote itself, and says nothing new.
///
/// What is not remembered is decided once more, which does no harm: so it is forgotten after `ageMax` at the latest
/// (somebody may want it decided again), and sooner when there is very much of it. A value without a clock.
struct DecidedPositions: Sendable {
    static let ageMax = Duration.seconds(60)
    static let countMax = 20_000

    private struct Decided {
        let position: Int64
        let at: ContinuousClock.Instant
    }

    private var recent: [WorkKey: Decided] = [:]
    private var earlier: [WorkKey: Decided] = [:]
    private var turnedAt: ContinuousClock.Instant

    init(now: ContinuousClock.Instant) { turnedAt = now }

    mutating func note(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) {
        turn(now: now)
        recent[key] = Decided(position: max(position, decided(key, now: now)?.position ?? 0), at: now)
    }

    mutating func includes(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) -> Bool {
        turn(now: now)
        return decided(key, now: now).map { position <= $0.position } ?? false
    }

    private func decided(_ key: WorkKey, now: ContinuousClock.Instant) -> Decided? {
        (recent[key] ?? earlier[key]).flatMap { now - $0.at < Self.ageMax ? $0 : nil }
    }

    private mutating func turn(now: ContinuousClock.Instant) {
        guard now - turnedAt >= Self.ageMax || recent.count >= Self.countMax else { return }
        earlier = recent
        recent = [:]
        turnedAt = now
    }
}
