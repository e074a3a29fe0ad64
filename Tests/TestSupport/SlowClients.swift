/// Clients that send a request too slowly, or open too many connections.
package struct SlowClients: Sendable {
    private let port: Int

    package init(port: Int) { self.port = port }

    /// Opens a silent connection, one with a trickling head and one with a trickling body, and waits until the server
    /// closes them.
    ///
    /// - Parameters:
    ///   - target: The path that the body is posted to.
    ///   - fields: Fields of that request.
    /// - Returns: The connections that are still open after `patienceMax`.
    package func survivors(posting target: String, fields: [String] = []) async throws -> [String] {
        let lines = (["Host: localhost"] + fields).map { $0 + "\r\n" }.joined()
        let clients = [
            (name: "silent", beginning: "", rest: ""),
            (name: "trickling head", beginning: "GET \(target) HTTP/1.1\r\nHost: localhost\r\nX: ", rest: "x"),
            (
                name: "trickling body",
                beginning: "POST \(target) HTTP/1.1\r\n\(lines)Content-Length: 100000\r\n\r\n", rest: " "
            ),
        ]
        return try await withThrowingTaskGroup(of: String?.self) { group in
            for client in clients {
                group.addTask {
                    try await withOwnThread {
                        var connection = try RawConnection(port: port)
                        connection.send(client.beginning)
                        return connection.waitForEnd(sending: client.rest) ? nil : client.name
                    }
                }
            }
            return try await group.reduce(into: []) { names, name in if let name { names.append(name) } }.sorted()
        }
    }

    /// Opens as many connections as a network may have. Checks that the next one is rejected, that another network has
    /// its own limit, and that a closed connection frees its slot.
    ///
    /// - Parameters:
    ///   - path: A path that has a response.
    ///   - holding: A request whose first response does not end its connection; `nil`: a GET of the path.
    /// - Returns: A line for each check that failed.
    package func limitFaults(_ countMax: Int, path: String, holding: String? = nil) async throws -> [String] {
        try await withOwnThread {
            let request = holding ?? Self.request(path)
            var held: [Held] = []
            while held.count < countMax { held.append(try Held(request, port: port)) }
            var faults: [String] = []
            if try isServed(path) { faults.append("connection \(countMax + 1) of a network was served") }
            if try !isServed(path, from: "127.0.0.2") { faults.append("another network was refused") }
            held.removeLast()
            let deadline = ContinuousClock.now + patienceMax
            while try !isServed(path) {
                guard ContinuousClock.now < deadline else { return faults + ["there is no room after a close"] }
            }
            return faults
        }
    }

    private func isServed(_ path: String, from source: String? = nil) throws -> Bool {
        var connection = try RawConnection(port: port, from: source)
        connection.send(Self.request(path))
        return (try? connection.response(to: "GET")) != nil
    }

    private static func request(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" }
}

/// An open connection that the server has counted: it has received a response.
private final class Held {
    private var connection: RawConnection

    init(_ request: String, port: Int) throws {
        connection = try RawConnection(port: port)
        connection.send(request)
        _ = try connection.response(to: "GET")
    }
}
