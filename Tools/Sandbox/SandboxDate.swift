import Essentials
import FoundationEssentials
import HTTPTypes
import Model
import NIOCore
import NIOHTTPTypes

/// Replaces the `Date` of every response by that of a wrong clock; the server sets the right one after the responder.
final class SandboxDate: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Seconds by which the clock is ahead; behind, if negative.
    private let skewSeconds: @Sendable () -> Int

    init(skewSeconds: @escaping @Sendable () -> Int) { self.skewSeconds = skewSeconds }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let skew = skewSeconds()
        guard skew != 0, case .head(var head) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        head.headerFields[.date] = Self.text(Int(Date().timeIntervalSince1970) + skew)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    /// The IMF-fixdate of RFC 9110, 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(_ seconds: Int) -> String {
        let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let days = seconds / 86_400
        let parts = Day(daysSinceEpoch: days).description.split(separator: "-")
        let month = months[(Int(parts[1]) ?? 1) - 1]
        func padded(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let clock = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60].map(padded).joined(separator: ":")
        return "\(weekdays[days % 7]), \(parts[2]) \(month) \(parts[0]) \(clock) GMT"
    }
}
