import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model

/// The requests of an SDK of PowerSync, and of Fieldpost's connector.
extension GatewayClient {
    /// Opens `POST /sync/stream`, and reads it by lines.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func buckets(_ body: [UInt8], token: String) async throws -> Lines {
        try await bucketChunks(body, token: token).lines(bytesMax: Self.lineBytesMax)
    }

    /// Opens `POST /sync/stream`.
    ///
    /// - Throws: `HTTPError` or ``UnexpectedResponse``.
    func bucketChunks(_ body: [UInt8] = firstBucketsBody(), token: String) async throws -> ByteChunks {
        let response = try await client.stream(
            Request("POST", url + "/sync/stream", headers: Self.headers(token), body: body), idleMax: Self.idleMax)
        guard response.status == 200 else {
            var text: [UInt8] = []
            for try await chunk in response.body where text.count < 4096 { text += chunk }
            throw UnexpectedResponse(status: response.status, detail: String(decoding: text, as: UTF8.self))
        }
        return response.body
    }

    /// The body of a device that has nothing.
    static func firstBucketsBody() -> [UInt8] {
        var database = PowerSyncDatabase(clientID: UUID())
        return database.syncRequest()
    }

    /// The result of an uploaded entry.
    struct UploadResult: Sendable {
        let number: Int64
        let outcome: MutationOutcome?
    }

    /// Sends `POST /v1/uploads`.
    ///
    /// - Returns: The results in the response's order, and the number that is expected next.
    /// - Throws: `HTTPError`, `DecodingError` or ``UnexpectedResponse``.
    func upload(_ body: [UInt8], token: String) async throws -> (results: [UploadResult], expected: Int64) {
        let response = try await client.send(
            Request("POST", url + "/v1/uploads", headers: Self.headers(token), body: body))
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        let content = try JSONDecoder().decode(Uploaded.self, from: Data(response.body))
        return (content.results.map(\.result), content.expectedSequence)
    }

    private struct Uploaded: Decodable {
        struct Item: Decodable {
            struct Accepted: Decodable { let position: Int64 }
            struct Rejected: Decodable {
                let type: String
                let detail: String?
            }
            let op_id: Int64
            let accepted: Accepted?
            let rejected: Rejected?

            var result: UploadResult {
                if let accepted {
                    return UploadResult(number: op_id, outcome: .accepted(position: accepted.position))
                }
                let code = rejected?.type.split(separator: ":").last.map(String.init) ?? ""
                return UploadResult(
                    number: op_id,
                    outcome: code == "result-expired"
                        ? .expired : .rejected(code: code, detail: rejected?.detail ?? ""))
            }
        }
        let results: [Item]
        let expectedSequence: Int64
    }

    /// Requests the number whose checkpoint has all uploads of a client.
    ///
    /// - Throws: `HTTPError`, `DecodingError` or ``UnexpectedResponse``.
    func writeCheckpoint(of client: UUID, token: String) async throws -> Int64 {
        let path = "/write-checkpoint2.json?client_id=\(client.text)"
        let response = try await self.client.send(Request("GET", url + path, headers: Self.headers(token)))
        guard response.status == 200 else { throw UnexpectedResponse(response) }
        let text = try JSONDecoder().decode(NumberResponse.self, from: Data(response.body)).data.write_checkpoint
        guard let number = Int64(text) else { throw UnexpectedResponse(response) }
        return number
    }

    private struct NumberResponse: Decodable {
        struct Content: Decodable { let write_checkpoint: String }
        let data: Content
    }

    private static func headers(_ token: String) -> [(name: String, value: String)] {
        [("Authorization", "Token \(token)"), ("Content-Type", "application/json"), ("Connection", "keep-alive")]
    }
}
