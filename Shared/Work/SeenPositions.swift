/// Up to which position of an object a worker has decided: an event that is not above it tells of what the worker saw,
/// or wrote itself, and says nothing new.
///
/// What is not remembered is decided once more, which does no harm: so it is forgotten after `ageMax` at the latest
/// (somebody may want it decided again), and sooner when there is very much of it. A value without a clock.
struct SeenPositions: Sendable {
    static let ageMax = Duration.seconds(60)
    static let countMax = 20_000

    private var recent: [WorkKey: Int64] = [:]
    private var earlier: [WorkKey: Int64] = [:]
    private var turnedAt: ContinuousClock.Instant

    init(now: ContinuousClock.Instant) { turnedAt = now }

    mutating func note(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) {
        turn(now: now)
        recent[key] = max(position, self.position(of: key) ?? 0)
    }

    mutating func includes(_ position: Int64, of key: WorkKey, now: ContinuousClock.Instant) -> Bool {
        turn(now: now)
        return self.position(of: key).map { position <= $0 } ?? false
    }

    private func position(of key: WorkKey) -> Int64? { recent[key] ?? earlier[key] }

    private mutating func turn(now: ContinuousClock.Instant) {
        guard now - turnedAt >= Self.ageMax / 2 || recent.count >= Self.countMax else { return }
        earlier = now - turnedAt >= Self.ageMax ? [:] : recent
        recent = [:]
        turnedAt = now
    }
}
