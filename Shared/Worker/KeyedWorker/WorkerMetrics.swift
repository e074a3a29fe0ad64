import Metrics

/// Metrics of a worker.
struct WorkerMetrics {
    let consumed: Metrics.Counter
    let deferred: Metrics.Counter
    let inFlight: Gauge
    let partitions: Gauge
    let revoked: Metrics.Counter

    /// - Parameter worker: Number of the worker in its process.
    init(group: String, worker: Int) {
        let dimensions = [("messaging.consumer.group.name", group)]
        consumed = Metrics.Counter(label: "messaging.client.consumed.messages", dimensions: dimensions)
        deferred = Metrics.Counter(label: "fieldpost.deferred.keys", dimensions: dimensions)
        let own = dimensions + [("worker", "\(worker)")]
        inFlight = Gauge(label: "fieldpost.calls.in_flight", dimensions: own)
        partitions = Gauge(label: "fieldpost.partitions", dimensions: own)
        revoked = Metrics.Counter(label: "fieldpost.partitions.revoked", dimensions: dimensions)
    }
}
