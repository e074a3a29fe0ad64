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
        let start = broker.logSize
        broker.signal(SIGUSR1)
        let deadline = ContinuousClock.now + Self.waitMax
        var table = Self.table(of: broker, after: start)
        while table == nil {
            guard broker.waitForEnd(within: .milliseconds(2)) == nil, .now < deadline else {
                throw ClusterFailure("the broker printed no requests: \(broker.logTail())")
            }
            table = Self.table(of: broker, after: start)
        }
        counts = Dictionary(table?.compactMap(Self.count) ?? []) { $1 }
    }

    /// The table that was printed after the log had `start` bytes. Its last line is the sum of its requests.
    private static func table(of broker: ClusterProcess, after start: Int) -> [Substring]? {
        let lines = broker.logTail(bytesMax: broker.logSize - start).split(separator: "\n")
        return lines.last?.hasSuffix(" requests") == true ? lines.dropLast() : nil
    }

    private static func count(_ line: Substring) -> (Kind, Int)? {
        let fields = line.split(separator: " ", maxSplits: 2)
        guard fields.count == 3, let count = Int(fields[0]) else { return nil }
        return (Kind(String(fields[1]), String(fields[2])), count)
    }
}
