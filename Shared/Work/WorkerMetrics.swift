import Metrics

/// What a worker counts.
struct WorkerMetrics {
    let consumed: Metrics.Counter
    let parked: Metrics.Counter
    let inFlight: Gauge
    let takenAway: Metrics.Counter

    init(group: String) {
        let dimensions = [("messaging.consumer.group.name", group)]
        consumed = Metrics.Counter(label: "messaging.client.consumed.messages", dimensions: dimensions)
        parked = Metrics.Counter(label: "fieldpost.parked.keys", dimensions: dimensions)
        inFlight = Gauge(label: "fieldpost.calls.in_flight", dimensions: dimensions)
        takenAway = Metrics.Counter(label: "fieldpost.partitions.taken_away", dimensions: dimensions)
    }
}
