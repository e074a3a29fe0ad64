import FoundationEssentials

/// Measures the time from a request for submission until the device's stream has `released`.
///
/// Only while the device is online: time offline does not count.
struct ReleaseClock: Sendable {
    private var sentAt: [UUID: ContinuousClock.Instant] = [:]
    private(set) var measured: [Duration] = []

    /// The first attempt counts; retries do not.
    mutating func sent(_ entry: UUID, at now: ContinuousClock.Instant) {
        if sentAt[entry] == nil { sentAt[entry] = now }
    }

    /// The device received the released entry; it is measured once.
    mutating func seenReleased(_ entry: UUID, at now: ContinuousClock.Instant) {
        if let start = sentAt.removeValue(forKey: entry) { measured.append(now - start) }
    }

    func isRunning(for entry: UUID) -> Bool { sentAt[entry] != nil }

    mutating func wentOffline() { sentAt = [:] }
}

/// Percentiles of measured times.
struct Percentiles: Equatable, Sendable {
    private let sorted: [Duration]

    init(_ values: [Duration]) { sorted = values.sorted() }

    var count: Int { sorted.count }

    /// The smallest value that at least `percent` per cent of the values do not exceed (nearest rank).
    subscript(percent: Int) -> Duration? {
        guard !sorted.isEmpty else { return nil }
        return sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
    }
}
