package import HTTPClient

/// Downloads an identity provider's JSON Web Key Set.
package struct JWKS: Sendable {
    private let client: Client

    package init(client: Client = Client()) { self.client = client }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Returns the document's bytes. Takes at most 5 s; fails above `KeySet.bytesMax`.
    package func fetch(_ url: String) async throws -> [UInt8] {
        let request = Request(
            url, headers: [("Accept", "application/json")], connectMax: .seconds(2), totalMax: .seconds(5),
            responseBytesMax: KeySet.bytesMax)
        let response = try await client.send(request)
        guard response.status == 200 else { throw Failure(description: "status \(response.status)") }
        return response.body
    }
}
