import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// Answers of the console's API, and the parameters of its requests.
enum ConsoleAnswer {
    static func json(_ value: some Encodable) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encoder.encode(value))))
    }

    static let noContent = Response(status: .noContent, headers: [.cacheControl: "no-store"])

    static func notFound(_ what: String) -> Problem { Problem(.notFound, detail: "There is no such \(what).") }

}

/// The parameters of a request's address, bounded.
struct ConsoleQuery {
    private static let textBytesMax = 1_024

    private let fields: FormFields

    /// - Throws: `Problem` 400.
    init(_ request: Request) throws(Problem) {
        guard let fields = FormFields(request.uri.query ?? ""),
            fields.items.allSatisfy({ $0.value.utf8.count <= Self.textBytesMax && !$0.value.utf8.contains(0) })
        else { throw Self.malformed("address") }
        self.fields = fields
    }

    /// `nil` when it is not there, or empty.
    subscript(name: String) -> String? { fields[name].flatMap { $0.isEmpty ? nil : $0 } }

    func text(_ name: String) throws(Problem) -> String {
        guard let text = self[name] else { throw Self.malformed(name) }
        return text
    }

    /// - Returns: `value` when it is not there.
    func integer(_ name: String, in range: ClosedRange<Int>, default value: Int) throws(Problem) -> Int {
        guard let text = self[name] else { return value }
        guard let number = Int(text), range.contains(number) else { throw Self.malformed(name) }
        return number
    }

    func realm(_ name: String) throws(Problem) -> RealmPath {
        guard let path = try? RealmPath(validating: try text(name)) else { throw Self.malformed(name) }
        return path
    }

    /// `nil` when it is not there.
    func id(_ name: String) throws(Problem) -> UUID? {
        guard let text = self[name] else { return nil }
        guard let id = UUID(ascii: text.lowercased()) else { throw Self.malformed(name) }
        return id
    }

    private static func malformed(_ name: String) -> Problem { Problem(.badRequest, detail: "Not usable: \(name).") }
}
