import Essentials
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceSettings
import Telemetry

/// The server for `/metrics`, `/health/live` and `/health/ready`.
///
/// It has a separate address, so that it is independent of the API's limits and not exposed to the API's clients.
enum AdminServer {
    /// Half of the connections per network, so that one monitoring system leaves capacity for other clients.
    static let limits = HTTPLimits(
        bodyBytesMax: 0, headerBytesMax: 16_384, connectionCountMax: 128, networkConnectionCountMax: 64,
        bodyMax: .seconds(15))

    static func component(
        host: String, port: Int, health: Health, metrics: MetricsRegistry,
        started: @escaping @Sendable (_ port: Int) -> Void = { _ in }
    ) -> Component {
        return .http("admin", host: host, port: port, limits: limits, started: started) { router in
            router.get("metrics") { _, _ in
                let process = ProcessMetrics.text(isReady: health.reasons.isEmpty && health.stalls().isEmpty)
                let parts = metrics.parts() + [ByteBuffer(string: process)]
                return response(.ok, "text/plain; version=0.0.4; charset=utf-8", ResponseBody(contentsOf: parts))
            }
            router.get("health/live") { _, _ in
                let stalls = health.stalls().mapValues { "no progress for \($0.settingText)" }
                return state(stalls.isEmpty, good: "live", bad: "stalled", stalls)
            }
            router.get("health/ready") { _, _ in
                let reasons = health.reasons
                return state(reasons.isEmpty, good: "ready", bad: "not ready", reasons)
            }
        }
    }

    private static func state(_ isGood: Bool, good: String, bad: String, _ reasons: [String: String]) -> Response {
        var json = Array("{\"status\":\"\(isGood ? good : bad)\",\"reasons\":{".utf8)
        for (index, reason) in reasons.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            JSONText.append(reason.key, to: &json)
            json.append(UInt8(ascii: ":"))
            JSONText.append(reason.value, to: &json, bytesMax: 1024)
        }
        json += "}}\n".utf8
        return response(
            isGood ? .ok : .serviceUnavailable, "application/json",
            ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
    }

    private static func response(_ status: HTTPResponse.Status, _ contentType: String, _ body: ResponseBody) -> Response
    {
        Response(
            status: status, headers: [.contentType: contentType, .cacheControl: "no-store"], body: body)
    }
}
