import DeviceClient
import FoundationEssentials
import HTTP
import Model
import Postgres

/// The device API as a device calls it.
struct GatewayClient: Sendable {
    /// An answer that is not what was asked for.
    struct Refusal: Error, CustomStringConvertible {
        let status: Int
        let detail: String

        var description: String { "the gateway answers \(status): \(detail)" }
    }

    let client: Client
    /// Without a slash at the end.
    let url: String

    /// The longest line of a stream.
    static let lineBytesMax = 16 * 1024 * 1024
    /// A live stream on which nothing came for so long, keep-alives included, is opened again.
    static let idleMax = Duration.seconds(90)

    /// Opens the stream of all realms the token may open.
    ///
    /// - Parameter body: What the device holds, as `DeviceState.syncRequest` says it.
    /// - Throws: `HTTPError` or ``Refusal``.
    func sync(token: String, body: [UInt8]) async throws -> Lines {
        let response = try await client.stream(
            Request("POST", url + "/v1/sync", headers: headers(token), body: body), idleMax: Self.idleMax)
        guard response.status == 200 else {
            var text: [UInt8] = []
            for try await chunk in response.body where text.count < 4096 { text += chunk }
            throw Refusal(status: response.status, detail: String(decoding: text, as: UTF8.self))
        }
        return response.body.lines(bytesMax: Self.lineBytesMax)
    }

    /// The body of a device that holds nothing.
    static func firstSyncBody(isLive: Bool) -> [UInt8] {
        var device = DeviceState(clientID: UUID())
        return device.syncRequest(isLive: isLive)
    }

    /// Sends mutations once.
    ///
    /// - Returns: The whole answer, whatever its status.
    func send(_ body: [UInt8], token: String) async throws(HTTPError) -> Response {
        try await client.send(Request("POST", url + "/v1/mutations", headers: headers(token), body: body))
    }

    private func headers(_ token: String) -> [(name: String, value: String)] {
        [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json"), ("Connection", "keep-alive")]
    }
}
