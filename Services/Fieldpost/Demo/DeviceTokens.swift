import FoundationEssentials
import HTTP
import Synchronization

/// Tokens of the sandbox's identity provider.
struct DeviceTokens: Sendable {
    private struct Wanted: Encodable {
        let email: String
        let name: String
        let environment: String?
    }

    /// Without a slash at the end.
    let url: String
    /// The path of the environment's issuer below the provider's; `nil` for the provider itself.
    let issuerPath: String?
    let client: Client

    /// One token for each person, in their order.
    ///
    /// - Throws: `HTTPError` or `DemoProblem`.
    func tokens(for people: [Organisation.Person]) async throws -> [String] {
        let wanted = people.map { Wanted(email: $0.email, name: $0.name, environment: issuerPath) }
        let response = try await client.send(
            Request(
                "POST", url + "/sandbox/tokens", headers: [("Content-Type", "application/json")],
                body: Array(try JSONEncoder().encode(wanted))))
        guard response.status == 200 else {
            throw DemoProblem("the identity provider answers \(response.status) to POST /sandbox/tokens")
        }
        let tokens = try JSONDecoder().decode([String].self, from: Data(response.body))
        guard tokens.count == people.count else {
            throw DemoProblem("the identity provider gives \(tokens.count) tokens for \(people.count) people")
        }
        return tokens
    }
}

/// What keeps the demo from going on, in one line for the person who started it.
struct DemoProblem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
