package import HTTPClient

/// Fetches an identity provider's keys.
package struct JWKS: Sendable {
    private let client: Client

    package init(client: Client = Client()) { self.client = client }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The document's bytes. At most 5 s and `KeySet.bytesMax`.
    package func fetch(_ url: String) async throws -> [UInt8] {
        let request = Request(
            url, headers: [("Accept", "application/json")], connectMax: .seconds(2), totalMax: .seconds(5),
            answerBytesMax: KeySet.bytesMax)
        let response = try await client.send(request)
        guard response.status == 200 else { throw Failure(description: "status \(response.status)") }
        return response.body
    }
}
