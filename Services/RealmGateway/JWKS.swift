import HTTP

/// Fetches an identity provider's keys.
struct JWKS: Sendable {
    private let client = Client()

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The document's bytes. At most 5 s and `KeySet.bytesMax`.
    func fetch(_ url: String) async throws -> [UInt8] {
        let request = Request(
            url, headers: [("Accept", "application/json")], connectMax: .seconds(2), totalMax: .seconds(5),
            answerBytesMax: KeySet.bytesMax)
        let response = try await client.send(request)
        guard response.status == 200 else { throw Failure(description: "status \(response.status)") }
        return response.body
    }
}
