import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model

/// Responses of the console's API.
enum ConsoleResponse {
    static let noContent = Response(status: .noContent, headers: [.cacheControl: "no-store"])

    static func notFound(_ subject: String) -> Problem { Problem(.notFound, detail: "The \(subject) does not exist.") }
}

/// The query parameters of a request, with limited sizes.
struct ConsoleQuery {
    private static let textBytesMax = 1_024

    private let fields: FormFields

    /// - Throws: `Problem` 400.
    init(_ request: Request) throws(Problem) {
        guard let fields = FormFields(request.uri.query ?? ""),
            fields.items.allSatisfy({ $0.value.utf8.count <= Self.textBytesMax && !$0.value.utf8.contains(0) })
        else { throw Self.malformed("query") }
        self.fields = fields
    }

    /// The value; `nil` if it is absent or empty.
    subscript(name: String) -> String? { fields[name].flatMap { $0.isEmpty ? nil : $0 } }

    func text(_ name: String) throws(Problem) -> String {
        guard let text = self[name] else { throw Self.malformed(name) }
        return text
    }

    /// - Returns: `value` if the parameter is absent.
    func integer(_ name: String, in range: ClosedRange<Int>, default value: Int) throws(Problem) -> Int {
        guard let text = self[name] else { return value }
        guard let number = Int(text), range.contains(number) else { throw Self.malformed(name) }
        return number
    }

    func realm(_ name: String) throws(Problem) -> RealmPath {
        guard let path = try? RealmPath(validating: try text(name)) else { throw Self.malformed(name) }
        return path
    }

    /// - Returns: `nil` if the parameter is absent.
    func id(_ name: String) throws(Problem) -> UUID? {
        guard let text = self[name] else { return nil }
        guard let id = UUID(ascii: text.lowercased()) else { throw Self.malformed(name) }
        return id
    }

    private static func malformed(_ name: String) -> Problem {
        Problem(.badRequest, detail: "The parameter '\(name)' is missing or not valid.")
    }
}
