import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres

/// The device API as a device calls it.
struct GatewayClient: Sendable {
    /// An answer that is not what was asked for.
    struct Refusal: Error, CustomStringConvertible {
        let status: Int
        let detail: String

        var description: String { "the gateway answers \(status): \(detail)" }

        /// Where the environment is now, when it is not where it was asked for.
        var movedTo: String? {
            guard status == 421 else { return nil }
            return (try? JSONDecoder().decode(Moved.self, from: Data(detail.utf8)))?.baseURL
        }

        private struct Moved: Decodable { let baseURL: String? }
    }

    let client: Client
    /// Without a slash at the end.
    let url: String

    /// The longest line of a stream.
    static let lineBytesMax = 16 * 1024 * 1024
    /// A live stream on which nothing came for so long, keep-alives included, is opened again.
    static let idleMax = Duration.seconds(90)
    /// The largest image, as the gateway takes it.
    static let imageBytesMax = 1_048_576

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

    /// The realms that the token may open.
    ///
    /// - Throws: `HTTPError` or ``Refusal``.
    func realms(token: String) async throws -> Set<RealmPath> {
        let response = try await client.send(
            Request(url + "/v1/realms", headers: [("Authorization", "Bearer \(token)")]))
        guard response.status == 200 else { throw Refusal(response) }
        return Set(try JSONDecoder().decode(RealmList.self, from: Data(response.body)).realms.map(\.realm))
    }

    private struct RealmList: Decodable {
        struct Row: Decodable { let realm: RealmPath }
        let realms: [Row]
    }

    /// Sends an image, under an id that no object names yet. To send it again is harmless.
    ///
    /// - Throws: `HTTPError` or ``Refusal``.
    func putImage(_ id: UUID, _ bytes: [UInt8], token: String) async throws {
        // What it is, the gateway tells by its bytes.
        let headers = headers(token, contentType: "application/octet-stream")
        let response = try await client.send(Request("PUT", address(ofImage: id), headers: headers, body: bytes))
        guard response.status == 201 || response.status == 204 else { throw Refusal(response) }
    }

    /// - Returns: The image's bytes; `nil` when there is none, or none that the token may read.
    /// - Throws: `HTTPError` or ``Refusal``.
    func image(_ id: UUID, token: String) async throws -> [UInt8]? {
        let request = Request(
            address(ofImage: id), headers: [("Authorization", "Bearer \(token)")], answerBytesMax: Self.imageBytesMax)
        let response = try await client.send(request)
        if response.status == 404 { return nil }
        guard response.status == 200 else { throw Refusal(response) }
        return response.body
    }

    /// Stores the person's own login of Compass. To send it again is harmless.
    ///
    /// - Throws: `HTTPError` or ``Refusal``.
    func putCompassLogin(_ user: String, password: String, token: String) async throws {
        let body = Array(try JSONEncoder().encode(["user": user, "password": password]))
        let response = try await client.send(
            Request("PUT", url + "/v1/credentials/compass", headers: headers(token), body: body))
        guard response.status == 204 else { throw Refusal(response) }
    }

    private func address(ofImage id: UUID) -> String { url + "/v1/blobs/\(id.text)" }

    private func headers(
        _ token: String, contentType: String = "application/json"
    ) -> [(name: String, value: String)] {
        [("Authorization", "Bearer \(token)"), ("Content-Type", contentType), ("Connection", "keep-alive")]
    }
}

extension GatewayClient.Refusal {
    /// An answer with the beginning of what it says.
    init(_ response: Response) {
        self.init(status: response.status, detail: String(decoding: response.body.prefix(1_000), as: UTF8.self))
    }
}
