internal import Essentials
public import FoundationEssentials
internal import HTTPClient
public import Logging
public import Model
internal import Synchronization

/// The device API, as an integration: blobs and mutations.
///
/// A request is retried while the gateway is unavailable or limits the rate: after connection errors and timeouts, and
/// after the statuses 429, 500, 502, 503 and 504. The wait grows exponentially, and is at least that of `Retry-After`;
/// it is at most a minute. The number of retries has no limit: cancel the task to end a call.
///
/// Calls may run concurrently.
public final class IntegrationClient: Sendable {
    private let url: String
    private let key: String
    private let logger: Logger
    private let client = Client()
    /// Numbers of mutations that no call uses. A call that fails does not return its own: whether the gateway has
    /// processed the number is unknown.
    private let idle = Mutex<[MutationNumbers]>([])

    /// The numbers of one client of the device API, from 1 without gaps.
    private struct MutationNumbers {
        let client = UUID()
        var next = 1
    }

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - url: The gateway's address, without a path: `https://fieldpost.example.com`.
    ///   - key: The key of `fieldpost environment integration add`, or an access token of client credentials.
    ///   - logger: Receives a warning for each retry.
    /// - Throws: ``IntegrationError/invalidSetting(_:)``.
    public init(
        url: String, key: String, logger: Logger = Logger(label: "integration")
    ) throws(IntegrationError) {
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let parsed = URL(string: url),
            ["http", "https"].contains(parsed.scheme), parsed.host()?.isEmpty == false,
            ["", "/"].contains(parsed.path()), parsed.query() == nil, parsed.fragment() == nil
        else { throw .invalidSetting("the gateway's URL is \"\(url)\": allowed are http and https, without a path") }
        guard !key.isEmpty, key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .invalidSetting("the integration's key is empty, or has characters other than printable ASCII")
        }
        self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
        self.key = key
        self.logger = logger
    }

    /// Downloads a blob.
    ///
    /// - Returns: Its bytes; `nil` if it does not exist, or the objects that refer to it were deleted.
    /// - Throws: ``IntegrationError/refused(status:detail:)`` or `CancellationError`.
    public func download(_ id: UUID) async throws -> [UInt8]? {
        let response = try await send("GET", "/v1/blobs/\(id.text)")
        if response.status == 404 { return nil }
        return try Self.checked(response, 200).body
    }

    /// Uploads a blob. A repeated upload of the same bytes has no effect.
    ///
    /// - Parameters:
    ///   - content: An image, or a PDF document.
    ///   - id: A random id: a person who can guess it could upload another blob under it.
    /// - Throws: ``IntegrationError/refused(status:detail:)`` or `CancellationError`.
    public func upload(_ content: [UInt8], as id: UUID) async throws {
        let response = try await send("PUT", "/v1/blobs/\(id.text)", content, type: "application/octet-stream")
        _ = try Self.checked(response, 201, 204)
    }

    /// Writes an object. The gateway applies the mutation once, however often the request is repeated by this call.
    ///
    /// - Parameters:
    ///   - mutation: With a position, it is applied only while the object has that position.
    ///   - realm: The object's realm.
    /// - Returns: The reason why the gateway rejected the mutation; `nil` if it was applied.
    /// - Throws: ``IntegrationError/refused(status:detail:)`` or `CancellationError`.
    public func send(_ mutation: Mutation, in realm: RealmPath) async throws -> MutationRejection? {
        var numbers = idle.withLock { $0.popLast() } ?? MutationNumbers()
        var response = try await send(mutation, in: realm, numbers)
        // After a restore of the database, the gateway does not have the earlier numbers, and applies nothing.
        if response.status == 409, Self.text(of: response).contains("sequence-gap") {
            numbers = MutationNumbers()
            response = try await send(mutation, in: realm, numbers)
        }
        let body = try Self.checked(response, 200).body
        guard let result = try? JSONDecoder().decode(Results.self, from: Data(body)).results.first else {
            throw IntegrationError.refused(status: 200, detail: "the response has no result")
        }
        numbers.next += 1
        idle.withLock { $0.append(numbers) }
        return result.rejected
    }

    private struct Results: Decodable {
        struct Result: Decodable {
            let rejected: MutationRejection?
        }
        let results: [Result]
    }

    private func send(
        _ mutation: Mutation, in realm: RealmPath, _ numbers: MutationNumbers
    ) async throws -> Response {
        try await send("POST", "/v1/mutations", Self.body(mutation, in: realm, numbers))
    }

    private static func body(_ mutation: Mutation, in realm: RealmPath, _ numbers: MutationNumbers) -> [UInt8] {
        var json = Array("{\"clientId\":\"\(numbers.client.text)\",\"mutations\":[{\"sequence\":".utf8)
        json += "\(numbers.next),\"realm\":".utf8
        JSONText.append("\(realm)", to: &json)
        json += ",\"op\":\"\(mutation.operation.rawValue)\",\"kind\":".utf8
        JSONText.append(mutation.kind.rawValue, to: &json)
        json += ",\"id\":\"\(mutation.id.text)\"".utf8
        if let fields = mutation.fields { json += Array(",\"fields\":".utf8) + fields }
        if let position = mutation.position { json += ",\"position\":\(position)".utf8 }
        if mutation.restores { json += ",\"restore\":true".utf8 }
        return json + "}]}".utf8
    }

    private static func checked(_ response: Response, _ statuses: Int...) throws(IntegrationError) -> Response {
        guard statuses.contains(response.status) else {
            throw .refused(status: response.status, detail: text(of: response))
        }
        return response
    }

    private static func text(of response: Response) -> String {
        String(decoding: response.body.prefix(500), as: UTF8.self)
    }

    private static let waitMax = Duration.seconds(60)

    /// Sends a request, and retries it.
    ///
    /// - Returns: A response whose status is not to be retried.
    private func send(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, type: String = "application/json"
    ) async throws -> Response {
        let request = Request(
            method, url + path, headers: [("Authorization", "Bearer \(key)"), ("Content-Type", type)], body: body)
        var backoff = Backoff(first: .seconds(1), waitMax: Self.waitMax)
        while true {
            let reason: String
            var wait = backoff.failed(random: .random(in: 0..<1))
            do throws(HTTPError) {
                let response = try await client.send(request)
                guard [429, 500, 502, 503, 504].contains(response.status) else { return response }
                reason = "\(response.status) \(Self.text(of: response))"
                if let seconds = response.headers["Retry-After"].flatMap({ Int64($0) }), seconds >= 0 {
                    wait = min(max(wait, .seconds(seconds)), Self.waitMax)
                }
            } catch {
                if error.isCancelled { throw CancellationError() }
                reason = error.message
            }
            logger.warning(
                "request failed, retrying",
                metadata: ["request": "\(method) \(path)", "reason": "\(reason)", "wait": "\(wait)"])
            try await Task.sleep(for: wait)
        }
    }
}
