import Essentials
import FoundationEssentials
import HTTPTypes
import Hummingbird
import NIOCore

/// A request's context with its connection, which some faults close.
struct ConnectionContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// A write with an injected fault.
struct FaultyWrite<System: SandboxSystem> {
    let system: System
    let context: ConnectionContext
    /// The back end's responses 503 and 500.
    let unavailable: Response
    let failed: Response

    /// - Parameter write: Executes the write, and returns its response; a trial only checks. It throws the errors of
    ///   the request.
    func perform(_ write: @escaping @Sendable (_ isTrial: Bool) throws -> Response) async throws -> Response {
        switch system.withDials({ $0.drawWrite() }) {
        case .none:
            return try write(false)
        case .lostAfterWrite:
            _ = try write(false)
            return await dropResponse("lostAfterWrite")
        case .failedAfterWrite:
            _ = try write(false)
            system.count("failedAfterWrite")
            return failed
        case .slowAfterWrite(let milliseconds):
            let response = try write(false)
            system.count("slowAfterWrite")
            try await Task.sleep(for: .milliseconds(milliseconds))
            return response
        case .late(let milliseconds, let isAnswered):
            _ = try write(true)
            commit(after: .milliseconds(milliseconds), write)
            guard isAnswered else { return await dropResponse("lateCommit") }
            system.count("lateCommit")
            return unavailable
        }
    }

    private func commit(after time: Duration, _ write: @escaping @Sendable (_ isTrial: Bool) throws -> Response) {
        system.withDials { $0.lateCommitsWaiting += 1 }
        Task {
            repeat {
                try await Task.sleep(for: max(time, .milliseconds(1)))
            } while system.switches.faults.holdsLateCommits
            // A write that has become invalid meanwhile is dropped.
            _ = try? write(false)
            system.withDials { $0.lateCommitsWaiting -= 1 }
        }
    }

    /// Closes the connection; the returned response is not sent.
    private func dropResponse(_ kind: String) async -> Response {
        system.count(kind)
        try? await context.channel.close().get()
        return Response(status: .internalServerError)
    }
}

/// The common parts of the control routes, which need no credentials.
enum SandboxControl {
    static let bodyBytesMax = 64 * 1024 * 1024

    /// Makes the change that a body of JSON describes; an invalid body gets 400.
    static func change<Body: Decodable>(
        _ request: Request, _ apply: (Body) throws -> Response
    ) async throws -> Response {
        try await change(request) { (json: Data) in try apply(JSONDecoder().decode(Body.self, from: json)) }
    }

    static func change(_ request: Request, _ apply: (_ json: Data) throws -> Response) async throws -> Response {
        let bytes = try await request.body.collect(upTo: bodyBytesMax)
        do {
            return try apply(Data(bytes.readableBytesView))
        } catch let problem as SandboxProblem {
            return .json(.badRequest, .object([("problem", .string(problem.message))]))
        } catch let problem as DecodingError {
            return .json(.badRequest, .object([("problem", .string("\(problem)"))]))
        }
    }

    static func encoded(_ value: some Encodable) throws -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(value))))
    }

    /// One line of JSON per record, those after the number that the request names with `after`.
    ///
    /// - Parameter page: Some records after a number, with the last one's number; nil when there are no more.
    static func lines(
        _ request: Request, page: @escaping @Sendable (_ after: Int) -> (lines: [JSONText], last: Int)?
    ) -> Response {
        let first = request.uri.queryParameters["after"].flatMap { Int($0) } ?? 0
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody { writer in
                var after = first
                while let (lines, last) = page(after) {
                    after = last
                    var bytes: [UInt8] = []
                    for line in lines {
                        line.write(to: &bytes)
                        bytes.append(UInt8(ascii: "\n"))
                    }
                    try await writer.write(ByteBuffer(bytes: bytes))
                }
                try await writer.finish(nil)
            })
    }
}

extension Response {
    static func json(_ status: HTTPResponse.Status, _ json: JSONText) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.bytes)))
    }
}

extension String {
    /// RFC 3986, 2.1; nil when an escape is broken or the bytes are not UTF-8.
    func removingURLPercentEncoding() -> String? {
        guard utf8.contains(UInt8(ascii: "%")) else { return self }
        var bytes: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let digits = String(rest.prefix(2)), digits.utf8.count == 2, let value = UInt8(digits, radix: 16)
            else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
