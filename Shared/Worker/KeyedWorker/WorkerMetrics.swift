import Metrics

/// What a worker counts.
struct WorkerMetrics {
    let consumed: Metrics.Counter
    let parked: Metrics.Counter
    let inFlight: Gauge
    let partitions: Gauge
    let takenAway: Metrics.Counter

    /// - Parameter worker: Which of the workers of its process it is.
    init(group: String, worker: Int) {
        let dimensions = [("messaging.consumer.group.name", group)]
        consumed = Metrics.Counter(label: "messaging.client.consumed.messages", dimensions: dimensions)
        parked = Metrics.Counter(label: "fieldpost.parked.keys", dimensions: dimensions)
        let own = dimensions + [("worker", "\(worker)")]
        inFlight = Gauge(label: "fieldpost.calls.in_flight", dimensions: own)
        partitions = Gauge(label: "fieldpost.partitions", dimensions: own)
        takenAway = Metrics.Counter(label: "fieldpost.partitions.taken_away", dimensions: dimensions)
    }
}
