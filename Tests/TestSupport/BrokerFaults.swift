import Essentials
import Foundation

/// Random faults of the brokers of a cluster and of the coordinators of its groups.
package enum BrokerFaults {
    /// The duration of the faults.
    package static let duration = Duration.seconds(5)

    /// Freezes, cuts and delays brokers, moves leaders and coordinators for ``duration``, then repairs every broker.
    ///
    /// - Parameters:
    ///   - topics: The topics whose leaders move, with their numbers of partitions.
    ///   - groups: The groups whose coordinators move.
    ///   - pauseMax: The longest time between two faults. The shortest is 10 ms; each order of magnitude between them
    ///     is equally frequent.
    ///   - isRunning: Whether the programs under test run; if not, the faults end early.
    package static func inject(
        into cluster: borrowing MockCluster, _ proxies: BrokerProxies, topics: [String: Int], groups: [String],
        pauseMax: Duration, seed: UInt64, while isRunning: () -> Bool
    ) {
        var random = SplitMix64(seed: seed)
        let partitions = topics.sorted { $0.key < $1.key }
        let pauses = log(10)...log(pauseMax / .milliseconds(1))
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end, isRunning() {
            let broker = Int.random(in: 1...3, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0, 1: proxies.freeze(broker)
            case 2, 3: proxies.cut(broker)
            case 4: proxies.setRoundTrip(.milliseconds(Int.random(in: 0...600, using: &random)), of: broker)
            case 5: if let group = groups.randomElement(using: &random) { cluster.coordinate(group, by: Int32(broker)) }
            // COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
            case 6: cluster.spoil(.offsetFetch, with: [14, 15, 16, 16])
            case 7:
                guard let (topic, count) = partitions.randomElement(using: &random) else { continue }
                cluster.lead(topic, Int32.random(in: 0..<Int32(count), using: &random), by: Int32(broker))
            default: repair(proxies, broker)
            }
            let pause = Duration.milliseconds(exp(Double.random(in: pauses, using: &random)))
            poll(nil, 0, Int32(max(0, min(pause, end - .now) / .milliseconds(1))))
        }
        for broker in 1...3 { repair(proxies, broker) }
    }

    private static func repair(_ proxies: BrokerProxies, _ broker: Int) {
        proxies.resume(broker)
        proxies.restore(broker)
        proxies.setRoundTrip(.zero, of: broker)
    }
}
