import Metrics

/// Metrics of deliveries by channel. Counts may be slightly too high, because a decision that conflicts is counted
/// again.
struct DeliveryMetrics: Sendable {
    enum Result: String, CaseIterable {
        case delivered
        /// The delivery is retried.
        case failed
        case givenUp = "given_up"
    }

    private let counters: [String: Counter]
    private let ages: [Channel: Gauge]

    init() {
        var counters: [String: Counter] = [:]
        for channel in Channel.allCases {
            for result in Result.allCases {
                counters[channel.rawValue + result.rawValue] = Counter(
                    label: "fieldpost.deliveries",
                    dimensions: [("channel", channel.rawValue), ("result", result.rawValue)])
            }
        }
        self.counters = counters
        ages = Dictionary(
            uniqueKeysWithValues: Channel.allCases.map { channel in
                (
                    channel,
                    Gauge(label: "fieldpost.deliveries.oldest_seconds", dimensions: [("channel", channel.rawValue)])
                )
            })
    }

    func count(_ channel: Channel, _ result: Result) { counters[channel.rawValue + result.rawValue]?.increment() }

    /// - Parameter seconds: Age of the oldest due delivery.
    func oldest(_ channel: Channel, seconds: Double) { ages[channel]?.record(seconds) }
}
