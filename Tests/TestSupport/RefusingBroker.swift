import Foundation
import LocalCluster
import Synchronization

/// A broker that implements the part of Kafka's protocol needed to reject a password: ApiVersions, SaslHandshake and
/// SaslAuthenticate. A rejection takes 0 to 49 ms, so that the time which clients report varies.
package final class RefusingBroker: Sendable {
    private let listener: LocalListener
    /// `host:port`
    package var address: String { listener.address }

    private let refusals: Refusals
    /// Number of rejected passwords.
    package var refusedCount: Int { refusals.count.withLock { $0 } }

    private final class Refusals: Sendable {
        let count = Mutex(0)
    }

    package init() throws {
        let refusals = Refusals()
        self.refusals = refusals
        listener = try LocalListener { Self.serve($0, refusals) }
    }

    private static func serve(_ connection: Int32, _ refusals: Refusals) {
        while let head = read(4, from: connection), let request = read(Int(number(head)), from: connection) {
            let (api, version) = (request[1], request[3])
            var answer = Array(request[4..<8])
            switch api {
            case 18 where version > 0: answer += [0, 35, 0, 0, 0, 0]  // UNSUPPORTED_VERSION: retry with 0
            case 18: answer += [0, 0, 0, 0, 0, 3] + [(18, 0), (17, 1), (36, 0)].flatMap { [0, $0, 0, 0, 0, $1] }
            case 17: answer += [0, 0, 0, 0, 0, 1, 0, 5] + Array("PLAIN".utf8)
            default:
                let count = refusals.count.withLock { $0 }
                poll(nil, 0, Int32(count % 50))
                answer += [0, 58, 0, 5] + Array("wrong".utf8) + [0, 0, 0, 0]  // SASL_AUTHENTICATION_FAILED
            }
            let size = answer.count
            let frame = [UInt8(0), 0, UInt8(size >> 8), UInt8(size & 255)] + answer
            guard unsafe send(connection, frame, frame.count, Int32(MSG_NOSIGNAL)) == frame.count else { return }
            if api == 36 { return refusals.count.withLock { $0 += 1 } }
        }
    }

    private static func number(_ bytes: [UInt8]) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    /// - Returns: `nil` if the connection closes first or the announced size exceeds that of a request.
    private static func read(_ count: Int, from connection: Int32) -> [UInt8]? {
        guard count < 10_000 else { return nil }
        var bytes: [UInt8] = []
        while bytes.count < count {
            var part = [UInt8](repeating: 0, count: count - bytes.count)
            let size = unsafe recv(connection, &part, part.count, 0)
            guard size > 0 else { return nil }
            bytes += part[..<size]
        }
        return bytes
    }
}
