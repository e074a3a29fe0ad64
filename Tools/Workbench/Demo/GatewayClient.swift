import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres

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
    /// Maximum size of an image at the gateway, in bytes.
    static let imageBytesMax = 1_048_576

    /// Opens the stream of all permitted realms.
    ///
    /// - Parameter body: The device's state, from `DeviceState.syncRequest`.
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func sync(token: String, body: [UInt8]) async throws -> Lines {
        let response = try await client.stream(
            Request("POST", url + "/v1/sync", headers: headers(token), body: body), idleMax: Self.idleMax)
        guard response.status == 200 else {
            var text: [UInt8] = []
            for try await chunk in response.body where text.count < 4096 { text += chunk }
            throw UnexpectedResponse(status: response.status, detail: String(decoding: text, as: UTF8.self))
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
    /// - Returns: The response, with any status.
    func send(_ body: [UInt8], token: String) async throws(HTTPError) -> Response {
        try await client.send(Request("POST", url + "/v1/mutations", headers: headers(token), body: body))
    }

    /// The realms that the token may open.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func realms(token: String) async throws -> Set<RealmPath> {
        let response = try await client.send(
            Request(url + "/v1/realms", headers: [("Authorization", "Bearer \(token)")]))
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        return Set(try JSONDecoder().decode(RealmList.self, from: Data(response.body)).realms.map(\.realm))
    }

    private struct RealmList: Decodable {
        struct Row: Decodable { let realm: RealmPath }
        let realms: [Row]
    }

    /// Sends an image, under an id that no object names yet. To send it again is harmless.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func putImage(_ id: UUID, _ bytes: [UInt8], token: String) async throws {
        // The gateway determines the image's type by its bytes.
        let headers = headers(token, contentType: "application/octet-stream")
        let response = try await client.send(Request("PUT", address(ofImage: id), headers: headers, body: bytes))
        guard response.status == 201 || response.status == 204 else { throw UnexpectedResponse(response) }
    }

    /// - Returns: The image's bytes; `nil` when there is none, or none that the token may read.
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func image(_ id: UUID, token: String) async throws -> [UInt8]? {
        let request = Request(
            address(ofImage: id), headers: [("Authorization", "Bearer \(token)")], responseBytesMax: Self.imageBytesMax)
        let response = try await client.send(request)
        if response.status == 404 { return nil }
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        return response.body
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

    private func address(ofImage id: UUID) -> String { url + "/v1/blobs/\(id.text)" }

    private func headers(
        _ token: String, contentType: String = "application/json"
    ) -> [(name: String, value: String)] {
        [("Authorization", "Bearer \(token)"), ("Content-Type", contentType), ("Connection", "keep-alive")]
    }
}

extension GatewayClient.UnexpectedResponse {
    /// The response with the beginning of its body.
    init(_ response: Response) {
        self.init(status: response.status, detail: String(decoding: response.body.prefix(1_000), as: UTF8.self))
    }
}
