/// The filter of a listing: comparisons of fields with literals, `and`, `or`.
indirect enum Filter: Sendable {
    case all([Filter])
    case any([Filter])
    case compare(field: String, Comparison, value: String)

    enum Comparison: String, Sendable { case eq, ne, ge, le, gt, lt }

    /// The value of a row's field. Texts are compared as such, which orders dates (`yyyy-MM-dd`) too.
    enum Value: Sendable {
        case number(Double)
        case text(String)
    }

    struct Malformed: Error {}

    /// Whether a row with these values passes.
    func matches(_ value: (String) -> Value?) -> Bool {
        switch self {
        case .all(let parts): parts.allSatisfy { $0.matches(value) }
        case .any(let parts): parts.contains { $0.matches(value) }
        case .compare(let field, let comparison, let literal):
            switch value(field) {
            case .number(let number): Double(literal).map { comparison.holds(number, $0) } ?? false
            case .text(let text): comparison.holds(text, literal)
            case nil: false
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
}

extension Filter.Comparison {
    fileprivate func holds<Operand: Comparable>(_ left: Operand, _ right: Operand) -> Bool {
        switch self {
        case .eq: left == right
        case .ne: left != right
        case .ge: left >= right
        case .le: left <= right
        case .gt: left > right
        case .lt: left < right
        }
    }
}
