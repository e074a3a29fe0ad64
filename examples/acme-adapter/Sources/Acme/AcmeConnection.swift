import BackendProtocol
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Returns the adapter for an Acme system.
///
/// - Parameters:
///   - url: Its address, such as `https://acme.example.com`.
///   - callMax: Timeout of a single HTTP call.
public func acmeBackend(at url: String, token: String, callMax: Duration) -> any TimeBackend {
    let connection = AcmeConnection(url: url, token: token, callMax: callMax)
    return AcmeBackend { try await connection.send($0) }
}

/// Acme's interface over HTTP.
struct AcmeConnection: Sendable {
    let url: String
    let token: String
    let callMax: Duration

    private struct Body: Decodable {
        var text: String?
        var rows: [AcmeRow]?
        var tasks: [AcmeTask]?
    }

    func send(_ call: AcmeCall) async throws -> AcmeResponse {
        let (data, response) = try await respond(to: request(call))
        let http = response as? HTTPURLResponse
        let status = http?.statusCode ?? 0
        let decoded = Result { try JSONDecoder().decode(Body.self, from: data) }
        // A failure counts by its status, even if a proxy wrote the body.
        let body = try status == 200 ? decoded.get() : (try? decoded.get()) ?? Body()
        return AcmeResponse(
            status: status, text: body.text ?? "",
            retryAfter: http?.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) }, rows: body.rows ?? [],
            tasks: body.tasks ?? [])
    }

    private func respond(to request: URLRequest) async throws -> (Data, URLResponse) {
        // On Linux, a session sends a DELETE again if a reused connection is closed without a response. Each write
        // therefore has a session with a connection of its own.
        let isWrite = request.httpMethod != "GET"
        let session = isWrite ? URLSession(configuration: .ephemeral) : .shared
        defer { if isWrite { session.finishTasksAndInvalidate() } }
        do {
            return try await session.data(for: request)
        } catch let error as URLError {
            switch error.code {
            case .badURL, .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed: throw AcmeUnreachable()
            // Acme may have processed the call.
            default: throw error
            }
        }
    }

    private func request(_ call: AcmeCall) throws -> URLRequest {
        guard let base = URL(string: url) else { throw AcmeUnreachable() }
        func rows(_ employee: String) -> URL { base.appending(components: "employees", employee, "rows") }
        var request: URLRequest
        switch call {
        case .tasks: request = URLRequest(url: base.appending(component: "tasks"))
        case .rows(let employee): request = URLRequest(url: rows(employee))
        case .save(let row):
            let isNew = row.number == 0
            request = URLRequest(
                url: isNew ? rows(row.employee) : rows(row.employee).appending(component: "\(row.number)"))
            request.httpMethod = isNew ? "POST" : "PUT"
            request.httpBody = try JSONEncoder().encode(row)
        case .remove(let number, let employee):
            request = URLRequest(url: rows(employee).appending(component: "\(number)"))
            request.httpMethod = "DELETE"
        }
        request.timeoutInterval = callMax / .seconds(1)
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        return request
    }
}
