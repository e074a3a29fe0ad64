import Essentials
import Foundation

/// The requests that an emulated broker (`sandbox broker`) received since its start.
package struct BrokerRequests: Sendable {
    package struct Kind: Hashable, Sendable {
        /// The API's name in the Kafka protocol.
        package let api: String
        package let clientID: String

        package init(_ api: String, _ clientID: String) { (self.api, self.clientID) = (api, clientID) }
    }

    package let counts: [Kind: Int]

    private static let waitMax = Duration.seconds(60)

    /// Makes a broker print its requests, and reads them from its log. Blocks meanwhile.
    ///
    /// - Throws: `ClusterFailure` if nothing was printed.
    package init(of broker: ClusterProcess) throws(ClusterFailure) {
        let tableCount = Self.tables(of: broker).count
        broker.signal(SIGUSR1)
        let deadline = ContinuousClock.now + Self.waitMax
        var tables = Self.tables(of: broker)
        while tables.count == tableCount {
            guard broker.waitForEnd(within: .milliseconds(2)) == nil, .now < deadline else {
                throw ClusterFailure("the broker printed no requests: \(broker.logTail())")
            }
            tables = Self.tables(of: broker)
        }
        counts = Dictionary(tables.last?.compactMap(Self.count) ?? []) { $1 }
    }

    /// The tables, each of which ends with the sum of its requests.
    private static func tables(of broker: ClusterProcess) -> [[Substring]] {
        let text = broker.logTail(bytesMax: 10_000_000)
        let parts = text.split(separator: "\n").split(omittingEmptySubsequences: false) { $0.hasSuffix(" requests") }
        return parts.dropLast().map { Array($0) }
    }

    private static func count(_ line: Substring) -> (Kind, Int)? {
        let fields = line.split(separator: " ", maxSplits: 2)
        guard fields.count == 3, let count = Int(fields[0]) else { return nil }
        return (Kind(String(fields[1]), String(fields[2])), count)
    }
}
