/// A filter of the vendor's own syntax: `employeeNumber$eq:7$and:date$gte:2015-03-30`.
///
/// Comparisons with `$and:` and `$or:`, which bind as usual; parentheses, lists and patterns are not understood and
/// refused. Source: "Filtering" in the vendor's OpenAPI document.
struct EconomicFilter: Sendable {
    enum Value: Sendable {
        case number(Double)
        case text(String)
    }

    fileprivate struct Predicate: Sendable {
        let property: String
        let comparison: String
        let value: String
    }

    struct Malformed: Error {}

    /// Any of these, each of which is all of those.
    private let alternatives: [[Predicate]]

    private static let comparisons = ["eq", "ne", "gt", "gte", "lt", "lte"]

    /// - Parameter properties: The properties that can be filtered.
    init(_ text: String, properties: Set<String>) throws {
        alternatives = try text.split(separator: "$or:", omittingEmptySubsequences: false).map { alternative in
            try alternative.split(separator: "$and:", omittingEmptySubsequences: false).map {
                try EconomicFilter.predicate($0, properties)
            }
        }
    }

    private static func predicate(_ text: Substring, _ properties: Set<String>) throws -> Predicate {
        guard let dollar = text.firstIndex(of: "$"), let colon = text[dollar...].firstIndex(of: ":") else {
            throw Malformed()
        }
        let comparison = String(text[text.index(after: dollar)..<colon])
        let property = String(text[..<dollar])
        guard comparisons.contains(comparison), properties.contains(property) else { throw Malformed() }
        let value = String(text[text.index(after: colon)...])
        guard !value.contains("$") else { throw Malformed() }
        return Predicate(property: property, comparison: comparison, value: value)
    }

    /// Whether a row with these values passes.
    func matches(_ value: (String) -> Value) -> Bool {
        alternatives.contains { $0.allSatisfy { $0.matches(value($0.property)) } }
    }

    /// The number that `property` must equal, if the filter requires one.
    func required(_ property: String) -> Int? {
        guard alternatives.count == 1 else { return nil }
        return alternatives[0].first { $0.property == property && $0.comparison == "eq" }.flatMap { Int($0.value) }
    }
}

extension EconomicFilter.Predicate {
    func matches(_ found: EconomicFilter.Value) -> Bool {
        switch found {
        case .number(let number): Double(value).map { compares(number, $0) } ?? false
        case .text(let text): compares(text, value)
        }
    }

    private func compares<Operand: Comparable>(_ left: Operand, _ right: Operand) -> Bool {
        switch comparison {
        case "eq": left == right
        case "ne": left != right
        case "gt": left > right
        case "gte": left >= right
        case "lt": left < right
        default: left <= right
        }
    }
}
