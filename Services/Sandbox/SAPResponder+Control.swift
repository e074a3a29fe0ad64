import FoundationEssentials
import Hummingbird
import Model
import NIOCore

/// `/sandbox/…`: what a demo or a test does behind SAP's back. It needs no credentials.
extension SAPResponder {
    func control(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"):
            return try encoded(system.switches)
        case (.post, "/sandbox/switches"):
            return try await change(request) { (patch: SAPSwitchesPatch) in
                try encoded(system.patch(patch))
            }
        case (.post, "/sandbox/organisation"):
            return try await change(request) { (organisation: SAPOrganisation) in
                system.load(organisation)
                return try encoded(["people": organisation.people.count, "projects": organisation.projects.count])
            }
        case (.post, "/sandbox/approvals"):
            return try await change(request) { (approval: Approval) in
                guard let number = Int(approval.record), let code = Int(approval.status),
                    let status = SAPRecord.Status(rawValue: code), system.approve(number, status)
                else { throw SAPSwitches.Problem(message: "record \(approval.record) has no such move") }
                return try encoded(["record": approval.record, "status": approval.status])
            }
        case (.post, "/sandbox/sessions/end"):
            sessions.endAll()
            return try encoded(["ended": true])
        case (.get, "/sandbox/stats"):
            return try encoded(system.counts)
        case (.get, "/sandbox/recorded"):
            return recorded(after: request.uri.queryParameters["after"].flatMap { Int($0) } ?? 0)
        default:
            return .notFound
        }
    }

    private struct Approval: Decodable {
        let record: String
        let status: String
    }

    private func change<Body: Decodable>(
        _ request: Request, _ apply: (Body) throws -> Response
    ) async throws -> Response {
        let bytes = try await request.body.collect(upTo: 64 * 1024 * 1024)
        do {
            return try apply(JSONDecoder().decode(Body.self, from: Data(bytes.readableBytesView)))
        } catch let problem as SAPSwitches.Problem {
            return .json(.badRequest, .object([("problem", .string(problem.message))]))
        } catch let problem as DecodingError {
            return .json(.badRequest, .object([("problem", .string("\(problem)"))]))
        }
    }

    private func encoded(_ value: some Encodable) throws -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(value))))
    }

    /// One line of JSON per record, in the order of their numbers.
    private func recorded(after: Int) -> Response {
        let system = system
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson"],
            body: ResponseBody { writer in
                var last = after
                while case let records = system.records(after: last, countMax: 500), let end = records.last {
                    last = end.number
                    var bytes: [UInt8] = []
                    for record in records {
                        line(of: record).write(to: &bytes)
                        bytes.append(UInt8(ascii: "\n"))
                    }
                    try await writer.write(ByteBuffer(bytes: bytes))
                }
                try await writer.finish(nil)
            })
    }

    private func line(of record: SAPRecord) -> JSONText {
        .object([
            ("record", .string(SAPRecord.text(ofNumber: record.number))),
            ("person", .string(record.person)),
            ("companyCode", .string(record.companyCode)),
            ("date", .string(record.date.description)),
            ("hours", .string(SAPEntities.decimal(record.hundredths))),
            ("note", .string(record.note)),
            ("wbsElement", .string(record.wbsElement)),
            ("status", .string(String(record.status.rawValue))),
            ("predecessor", record.predecessor.map { .string(SAPRecord.text(ofNumber: $0)) } ?? .null),
            ("cancelled", .bool(record.status == .cancelled)),
        ])
    }
}
