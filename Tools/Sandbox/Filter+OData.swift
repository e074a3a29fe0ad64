/// A `$filter` of OData V2: comparisons, `and`, `or`, parentheses.
extension Filter {
    init(odata text: String) throws {
        var tokens = try Filter.tokens(of: text)[...]
        self = try Filter.anyOf(&tokens)
        guard tokens.isEmpty else { throw Malformed() }
    }

    private static func anyOf(_ tokens: inout ArraySlice<String>) throws -> Filter {
        var parts = [try allOf(&tokens)]
        while tokens.first == "or" {
            tokens.removeFirst()
            parts.append(try allOf(&tokens))
        }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private static func allOf(_ tokens: inout ArraySlice<String>) throws -> Filter {
        var parts = [try comparison(&tokens)]
        while tokens.first == "and" {
            tokens.removeFirst()
            parts.append(try comparison(&tokens))
        }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private static func comparison(_ tokens: inout ArraySlice<String>) throws -> Filter {
        if tokens.first == "(" {
            tokens.removeFirst()
            let inner = try anyOf(&tokens)
            guard tokens.popFirst() == ")" else { throw Malformed() }
            return inner
        }
        guard let field = tokens.popFirst(), let comparison = tokens.popFirst().flatMap(Comparison.init(rawValue:)),
            let literal = tokens.popFirst()
        else { throw Malformed() }
        // gt and lt are answered as ge and le: "wrong on TimeSheetDate", SAP KBA 3744148.
        let answered: Comparison = comparison == .gt ? .ge : comparison == .lt ? .le : comparison
        return .compare(field: field, answered, value: try value(of: literal))
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
        // By scalars: a quote with a combining mark behind it is one Character.
        let parts = text.unicodeScalars.split(separator: "'", omittingEmptySubsequences: false)
        guard parts.count % 2 == 1 else { throw Malformed() }
        var tokens: [String] = []
        var word = String.UnicodeScalarView()
        func flush() {
            if !word.isEmpty { tokens.append(String(word)) }
            word = String.UnicodeScalarView()
        }
        for (index, part) in parts.enumerated() {
            if index % 2 == 1 {
                // After two quotes the literal continues: the first of them is in it already.
                if index == 1 || !parts[index - 1].isEmpty { word.append("'") }
                word.append(contentsOf: part)
                word.append("'")
            } else if !part.isEmpty {
                flush()
                for scalar in part {
                    guard " ()".unicodeScalars.contains(scalar) else {
                        word.append(scalar)
                        continue
                    }
                    flush()
                    if scalar != " " { tokens.append(String(scalar)) }
                }
            }
        }
        flush()
        return tokens
    }
}
