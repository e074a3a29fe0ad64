/// A `$filter` of OData V2: comparisons of fields with literals, `and`, `or`, parentheses.
///
/// Values are compared as text, which orders dates (`yyyy-MM-dd`) too.
indirect enum ODataFilter: Sendable {
    case all([ODataFilter])
    case any([ODataFilter])
    case compare(field: String, Comparison, value: String)

    enum Comparison: String, Sendable { case eq, ne, ge, le, gt, lt }

    struct Malformed: Error {}

    /// Whether a thing with these values is let through.
    func matches(_ value: (String) -> String?) -> Bool {
        switch self {
        case .all(let parts): return parts.allSatisfy { $0.matches(value) }
        case .any(let parts): return parts.contains { $0.matches(value) }
        case .compare(let field, let comparison, let literal):
            guard let value = value(field) else { return false }
            return switch comparison {
            case .eq: value == literal
            case .ne: value != literal
            // gt and lt are answered as ge and le: "wrong on TimeSheetDate", SAP KBA 3744148.
            case .ge, .gt: value >= literal
            case .le, .lt: value <= literal
            }
        }
    }

    /// The value that `field` must equal, or another required comparison, if the filter has one.
    func required(_ field: String, _ comparison: Comparison = .eq) -> String? {
        switch self {
        case .compare(field, comparison, let value): value
        case .all(let parts): parts.lazy.compactMap { $0.required(field, comparison) }.first
        case .any, .compare: nil
        }
    }

    /// All values `field` is compared with by `eq`.
    func values(of field: String) -> Set<String> {
        switch self {
        case .compare(field, .eq, let value): [value]
        case .compare: []
        case .all(let parts), .any(let parts): parts.reduce(into: []) { $0.formUnion($1.values(of: field)) }
        }
    }

    init(_ text: String) throws {
        var tokens = try ODataFilter.tokens(of: text)[...]
        self = try ODataFilter.anyOf(&tokens)
        guard tokens.isEmpty else { throw Malformed() }
    }

    private static func anyOf(_ tokens: inout ArraySlice<String>) throws -> ODataFilter {
        var parts = [try allOf(&tokens)]
        while tokens.first == "or" {
            tokens.removeFirst()
            parts.append(try allOf(&tokens))
        }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private static func allOf(_ tokens: inout ArraySlice<String>) throws -> ODataFilter {
        var parts = [try comparison(&tokens)]
        while tokens.first == "and" {
            tokens.removeFirst()
            parts.append(try comparison(&tokens))
        }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private static func comparison(_ tokens: inout ArraySlice<String>) throws -> ODataFilter {
        if tokens.first == "(" {
            tokens.removeFirst()
            let inner = try anyOf(&tokens)
            guard tokens.popFirst() == ")" else { throw Malformed() }
            return inner
        }
        guard let field = tokens.popFirst(), let comparison = tokens.popFirst().flatMap(Comparison.init(rawValue:)),
            let literal = tokens.popFirst()
        else { throw Malformed() }
        return .compare(field: field, comparison, value: try value(of: literal))
    }

    /// `'text'`, `guid'…'`, `datetime'2015-03-30T00:00:00'`, `true`.
    private static func value(of literal: String) throws -> String {
        let scalars = literal.unicodeScalars
        guard let quote = scalars.firstIndex(of: "'") else { return literal }
        let inner = String(scalars[scalars.index(after: quote)...].dropLast())
        switch String(scalars[..<quote]) {
        case "": return inner
        case "guid": return inner.lowercased()
        case "datetime": return String(inner.prefix(10))
        default: throw Malformed()
        }
    }

    /// Splits a filter into names, parentheses, and literals with their quotes (two quotes inside stand for one).
    private static func tokens(of text: String) throws -> [String] {
        var tokens: [String] = []
        // By scalars: a quote with a combining mark behind it is one Character.
        var word = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        func flush() {
            if !word.isEmpty { tokens.append(String(word)) }
            word = String.UnicodeScalarView()
        }
        while let scalar = rest.popFirst() {
            switch scalar {
            case " ": flush()
            case "(", ")":
                flush()
                tokens.append(String(scalar))
            case "'":
                word.append("'")
                while true {
                    guard let inner = rest.popFirst() else { throw Malformed() }
                    guard inner == "'" else {
                        word.append(inner)
                        continue
                    }
                    guard rest.first == "'" else { break }
                    rest.removeFirst()
                    word.append("'")
                }
                word.append("'")
                flush()
            default: word.append(scalar)
            }
        }
        flush()
        return tokens
    }
}
