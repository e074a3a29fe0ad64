import Metrics

/// What operators see of deliveries, by way. Counts may be a little too high: a decision that is taken back counts.
struct DeliveryMetrics: Sendable {
    enum Result: String, CaseIterable {
        case delivered
        /// It is tried again.
        case failed
        case givenUp = "given_up"
    }

    private let counters: [String: Counter]
    private let ages: [Way: Gauge]

    init() {
        var counters: [String: Counter] = [:]
        for way in Way.allCases {
            for result in Result.allCases {
                counters[way.rawValue + result.rawValue] = Counter(
                    label: "fieldpost.deliveries", dimensions: [("way", way.rawValue), ("result", result.rawValue)])
            }
        }
        self.counters = counters
        ages = Dictionary(
            uniqueKeysWithValues: Way.allCases.map { way in
                (way, Gauge(label: "fieldpost.deliveries.oldest_seconds", dimensions: [("way", way.rawValue)]))
            })
    }

    func count(_ way: Way, _ result: Result) { counters[way.rawValue + result.rawValue]?.increment() }

    /// - Parameter seconds: For how long the oldest waits of what is due.
    func oldest(_ way: Way, seconds: Double) { ages[way]?.record(seconds) }
}
