/// Sends requests on persistent connections and checks that each gets one response, in order.
package struct KeptConnections: Sendable {
    /// A request.
    package struct Request: Sendable {
        package var method: String
        package var target: String
        package var fields: [String]
        package var body: String

        /// - Parameters:
        ///   - fields: Header fields in addition to `Host` and those that delimit the body.
        ///   - isChunked: Whether the body is sent in chunks; `nil` without a body.
        package init(
            _ method: String, _ target: String, fields: [String] = [], body: String = "", isChunked: Bool? = nil
        ) {
            (self.method, self.target, self.fields) = (method, target, fields)
            switch isChunked {
            case nil: self.body = ""
            case false?:
                self.fields.append("Content-Length: \(body.utf8.count)")
                self.body = body
            case true?:
                self.fields.append("Transfer-Encoding: chunked")
                let size = String(body.utf8.count, radix: 16)
                self.body = body.isEmpty ? "0\r\n\r\n" : "\(size)\r\n\(body)\r\n0\r\n\r\n"
            }
        }

        var text: String {
            "\(method) \(target) HTTP/1.1\r\n" + (["Host: localhost"] + fields).map { $0 + "\r\n" }.joined()
                + "\r\n" + body
        }
    }

    static let methods = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "PROPFIND", "BREW",
    ]
    /// A path that no server serves.
    private static let nowhere = "/nowhere-at-all"

    let port: Int

    package init(port: Int) { self.port = port }

    /// Sends each method to each target, without a body and with one of either form; each between other requests on one
    /// connection.
    ///
    /// - Parameter fields: Sets of fields that each request is sent with.
    /// - Returns: The failures, one per line.
    package func faults(of targets: [String], fields: [[String]] = [[]], body: String = "{}") async -> [String] {
        var faults: [String] = []
        for target in targets {
            for method in Self.methods {
                // Later failures would have the same cause, and each missing response costs a timeout.
                guard faults.count < 5 else { return faults }
                for fields in fields {
                    for isChunked in [nil, false, true] {
                        faults += await self.faults(
                            of: Request(method, target, fields: fields, body: body, isChunked: isChunked))
                    }
                }
            }
        }
        return faults
    }

    /// Pipelines a request three times among other requests on one connection.
    ///
    /// - Returns: The failures, one per line.
    package func faults(of request: Request) async -> [String] {
        let nowhere = Request("GET", Self.nowhere)
        let last = Request("HEAD", Self.nowhere, fields: ["Connection: close"])
        let requests = [request, Request("HEAD", Self.nowhere), nowhere, request, request, nowhere, last]
        let port = port
        let name = "\(request.method) \(request.target) \(request.fields)"
        do {
            return try await withOwnThread { try Self.exchange(requests, port: port).map { "\(name): \($0)" } }
        } catch {
            return ["\(name): \(error)"]
        }
    }

    private static func exchange(_ requests: [Request], port: Int) throws -> [String] {
        var connection = try RawConnection(port: port)
        connection.send(requests.map(\.text).joined())
        var faults: [String] = []
        for (number, request) in requests.enumerated() {
            let response = try connection.response(to: request.method)
            if request.target == nowhere, response.status != 404 {
                faults.append("request \(number) was answered \(response.status), not 404")
            }
            if response.isLast {
                let rest = connection.rest()
                if !rest.isEmpty { faults.append("behind the last response came \(rest.prefix(80).debugDescription)") }
                return faults
            }
        }
        return faults + ["the connection was not closed"]
    }
}
