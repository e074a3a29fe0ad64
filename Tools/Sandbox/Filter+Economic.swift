/// A filter of e-conomic's own syntax: `employeeNumber$eq:7$and:date$gte:2015-03-30`.
///
/// Comparisons with `$and:` and `$or:`, which bind as usual; parentheses, lists and patterns are not understood and
/// refused. Source: "Filtering" in the vendor's OpenAPI document.
extension Filter {
    private static let economicComparisons: [String: Comparison] = [
        "eq": .eq, "ne": .ne, "gt": .gt, "gte": .ge, "lt": .lt, "lte": .le,
    ]

    /// - Parameter isProperty: Whether a property can be filtered.
    init(economic text: String, isProperty: (String) -> Bool) throws {
        let alternatives = try text.split(separator: "$or:", omittingEmptySubsequences: false).map { alternative in
            Filter.all(
                try alternative.split(separator: "$and:", omittingEmptySubsequences: false).map {
                    try Filter.economicComparison($0, isProperty)
                })
        }
        self = alternatives.count == 1 ? alternatives[0] : .any(alternatives)
    }

    private static func economicComparison(_ text: Substring, _ isProperty: (String) -> Bool) throws -> Filter {
        guard let dollar = text.firstIndex(of: "$"), let colon = text[dollar...].firstIndex(of: ":") else {
            throw Malformed()
        }
        let property = String(text[..<dollar])
        let value = String(text[text.index(after: colon)...])
        guard let comparison = economicComparisons[String(text[text.index(after: dollar)..<colon])],
            isProperty(property), !value.contains("$")
        else { throw Malformed() }
        return .compare(field: property, comparison, value: value)
    }
}
