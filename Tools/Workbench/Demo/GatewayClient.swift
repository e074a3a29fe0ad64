import DeviceClient
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model

/// A client of the device API.
struct GatewayClient: Sendable {
    /// An unexpected response.
    struct UnexpectedResponse: Error, CustomStringConvertible {
        let status: Int
        let detail: String

        var description: String { "the gateway answers \(status): \(detail)" }

        /// The environment's current address, if it has moved.
        var movedTo: String? {
            guard status == 421 else { return nil }
            return (try? JSONDecoder().decode(Moved.self, from: Data(detail.utf8)))?.baseURL
        }

        private struct Moved: Decodable { let baseURL: String? }
    }

    let client: Client
    /// Without a slash at the end.
    let url: String

    /// Maximum size of a stream's line, in bytes.
    static let lineBytesMax = 16 * 1024 * 1024
    /// Idle timeout of a live stream, including keep-alives.
    static let idleMax = Duration.seconds(90)

    /// Opens the stream of all permitted realms.
    ///
    /// - Parameter body: The device's state, from `DeviceState.syncRequest`.
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func stream(token: String, body: [UInt8] = firstSyncBody(isLive: false)) async throws -> ByteChunks {
        let response = try await client.stream(
            Request("POST", url + "/v1/sync", headers: headers(token), body: body), idleMax: Self.idleMax)
        guard response.status == 200 else {
            var text: [UInt8] = []
            for try await chunk in response.body where text.count < 4096 { text += chunk }
            throw UnexpectedResponse(status: response.status, detail: String(decoding: text, as: UTF8.self))
        }
        return response.body
    }

    /// Opens the stream, and reads it by lines.
    func sync(token: String, body: [UInt8] = firstSyncBody(isLive: false)) async throws -> Lines {
        try await stream(token: token, body: body).lines(bytesMax: Self.lineBytesMax)
    }

    /// The body of a device that holds nothing.
    static func firstSyncBody(isLive: Bool) -> [UInt8] {
        var device = DeviceState(clientID: UUID())
        return device.syncRequest(isLive: isLive)
    }

    /// Sends mutations once.
    ///
    /// - Returns: The response, with any status.
    func send(_ body: [UInt8], token: String) async throws(HTTPError) -> Response {
        try await client.send(Request("POST", url + "/v1/mutations", headers: headers(token), body: body))
    }

    /// Gets the kinds that the environment declares.
    ///
    /// - Returns: The response, with any status.
    func schema(token: String) async throws(HTTPError) -> Response {
        try await client.send(Request("GET", url + "/v1/schema", headers: headers(token)))
    }

    /// Returns the realms that the caller may open.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func realms(token: String) async throws -> Set<RealmPath> {
        let response = try await client.send(Request("GET", url + "/v1/realms", headers: headers(token)))
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        return Set(try JSONDecoder().decode(RealmList.self, from: Data(response.body)).realms.map(\.realm))
    }

    private struct RealmList: Decodable {
        struct Row: Decodable { let realm: RealmPath }
        let realms: [Row]
    }

    /// Stores the person's own login of Compass. To send it again is harmless.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func putCompassLogin(_ user: String, password: String, token: String) async throws {
        let body = Array(try JSONEncoder().encode(["user": user, "password": password]))
        let response = try await client.send(
            Request("PUT", url + "/v1/credentials/compass", headers: headers(token), body: body))
        guard response.status == 204 else { throw UnexpectedResponse(response) }
    }

    private func headers(_ token: String) -> [(name: String, value: String)] {
        [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json"), ("Connection", "keep-alive")]
    }
}

extension GatewayClient.UnexpectedResponse {
    /// The response with the beginning of its body.
    init(_ response: Response) {
        self.init(status: response.status, detail: String(decoding: response.body.prefix(1_000), as: UTF8.self))
    }
}
