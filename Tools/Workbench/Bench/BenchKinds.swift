import Essentials
import FoundationEssentials
import HTTPClient
import KindSchema
import Model
import ObjectStore
import Postgres

/// The declared kinds of benchmarks, and writes of their objects.
enum BenchKinds {
    /// Makes a schema file an environment's newest version.
    static func apply(_ file: String, to environment: EnvironmentID, on connection: inout Connection) throws {
        let application = try KindApplication(try SchemaValue(Array(file.utf8)), to: environment, on: &connection)
        _ = try application.commit(by: "bench", on: &connection) { _ in [] }
    }

    /// The request body of a new client with one put.
    static func put(_ kind: String, _ id: UUID, _ fields: String, in realm: RealmPath) -> [UInt8] {
        body(#""op":"put","fields":\#(fields)"#, kind, id, in: realm)
    }

    /// The request body of a new client with one deletion.
    static func delete(_ kind: String, _ id: UUID, in realm: RealmPath) -> [UInt8] {
        body(#""op":"delete""#, kind, id, in: realm)
    }

    private static func body(_ operation: String, _ kind: String, _ id: UUID, in realm: RealmPath) -> [UInt8] {
        Array(
            """
            {"clientId":"\(UUID().text)","mutations":[{"sequence":1,"realm":"\(realm)","kind":"\(kind)",\
            "id":"\(id.text)",\(operation)}]}
            """.utf8)
    }

    /// Whether the only mutation of a request was accepted.
    ///
    /// - Parameter code: The problem's code that may reject it; `nil`: none.
    /// - Throws: ``GatewayClient/UnexpectedResponse`` for another response.
    static func isAccepted(_ response: Response, unless code: String? = nil) throws -> Bool {
        let body = String(decoding: response.body, as: UTF8.self)
        if response.status == 200, body.contains(#""accepted":"#) { return true }
        if response.status == 200, let code, body.contains(code) { return false }
        throw GatewayClient.UnexpectedResponse(response)
    }
}
