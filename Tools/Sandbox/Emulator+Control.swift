import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// The control routes of all emulators, which need no credentials.
extension Emulator {
    func respondToControl(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"): return .json(.ok, try system.switches.json)
        case (.post, "/sandbox/switches"):
            return try await respond(toBodyOf: request) { json in
                try system.withState { try $0.injector.change(by: json) }.json
            }
        case (.get, "/sandbox/stats"):
            let counts = system.withState { state in
                state.injector.counts.merging([
                    "records": state.recordCount, "lateCommitsWaiting": state.injector.lateCommitsWaiting,
                ]) { $1 }
            }
            return .json(.ok, .object(counts.map { ($0.key, .number($0.value)) }))
        case (.post, "/sandbox/organisation"):
            return try await change(request) { (organisation: State.Organisation) in
                system.load(organisation)
                return ["loaded": true]
            }
        default: return try await control(request) ?? Self.notFound
        }
    }

    /// Makes the change that a body of JSON describes; an invalid body gets 400.
    func change<Body: Decodable>(_ request: Request, _ apply: (Body) throws -> JSON) async throws -> Response {
        try await respond(toBodyOf: request) { try apply(JSONDecoder().decode(Body.self, from: $0)) }
    }

    private func respond(toBodyOf request: Request, _ apply: (_ json: Data) throws -> JSON) async throws -> Response {
        let data = try await request.data()
        do {
            return .json(.ok, try apply(data))
        } catch {
            return .json(.badRequest, ["problem": .string("\(error)")])
        }
    }

    /// One line of JSON per row.
    func lines<Row: Sendable>(_ rows: [Row], _ json: @escaping @Sendable (Row) -> JSON) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody { writer in
                for start in stride(from: 0, to: rows.count, by: 500) {
                    var bytes: [UInt8] = []
                    for row in rows[start..<min(start + 500, rows.count)] {
                        json(row).write(to: &bytes)
                        bytes.append(UInt8(ascii: "\n"))
                    }
                    try await writer.write(ByteBuffer(bytes: bytes))
                }
                try await writer.finish(nil)
            })
    }
}

extension Request {
    private static var bodyBytesMax: Int { 64 * 1024 * 1024 }

    func data() async throws -> Data {
        let bytes = try await body.collect(upTo: Self.bodyBytesMax)
        return Data(bytes.readableBytesView)
    }

    /// The number after which the rows of a listing begin.
    var after: Int { max(0, uri.queryParameters["after"].flatMap { Int($0) } ?? 0) }
}
