/// A part of a regular expression.
indirect enum PatternNode: Equatable {
    /// The permitted counts; without an upper bound, any number.
    struct Counts: Equatable {
        let lowerBound: Int
        let upperBound: Int?
    }

    case set(ScalarSet)
    case start
    case end
    case sequence([PatternNode])
    case choice([PatternNode])
    case repeated(PatternNode, Counts)
}

/// Parses the supported part of the syntax of ECMA-262, and names what is not supported.
struct PatternParser {
    private static let depthMax = 20
    private static let special = Set("^$\\.*+?()[]{}|/".unicodeScalars)

    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var depth = 0

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    mutating func parse() throws(Pattern.Objection) -> PatternNode {
        let node = try choice()
        if peek != nil { throw objection("has a ')' without '('") }
        return node
    }

    private var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    private mutating func take() -> Unicode.Scalar? {
        guard let scalar = peek else { return nil }
        index += 1
        return scalar
    }

    private mutating func take(if scalar: Unicode.Scalar) -> Bool {
        guard peek == scalar else { return false }
        index += 1
        return true
    }

    private func objection(_ text: String) -> Pattern.Objection {
        Pattern.Objection(description: "\(text), at character \(index + 1)")
    }

    private mutating func choice() throws(Pattern.Objection) -> PatternNode {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw objection("has groups nested more than \(Self.depthMax) deep") }
        var nodes = [try sequence()]
        while take(if: "|") { nodes.append(try sequence()) }
        return nodes.count == 1 ? nodes[0] : .choice(nodes)
    }

    private mutating func sequence() throws(Pattern.Objection) -> PatternNode {
        var nodes: [PatternNode] = []
        while let scalar = peek, scalar != "|", scalar != ")" {
            let node = try atom()
            nodes.append(try quantified(node))
        }
        return nodes.count == 1 ? nodes[0] : .sequence(nodes)
    }

    private mutating func atom() throws(Pattern.Objection) -> PatternNode {
        guard let scalar = take() else { throw objection("is incomplete") }
        switch scalar {
        case "^": return .start
        case "$": return .end
        case ".": return .set(.any)
        case "(":
            if take(if: "?"), !take(if: ":") { throw objection("has '(?'; only '(…)' and '(?:…)' are supported") }
            let node = try choice()
            guard take(if: ")") else { throw objection("has a '(' without ')'") }
            return node
        case "[": return .set(try characterClass())
        case "\\": return .set(try escape(inClass: false))
        case "*", "+", "?", "{": throw objection("has '\(scalar)' without a character before it; write '\\\(scalar)'")
        case "}", "]": throw objection("has '\(scalar)' alone; write '\\\(scalar)'")
        default: return .set(.only(scalar))
        }
    }

    private mutating func quantified(_ node: PatternNode) throws(Pattern.Objection) -> PatternNode {
        guard let scalar = peek, "*+?{".unicodeScalars.contains(scalar) else { return node }
        if node == .start || node == .end { throw objection("repeats '^' or '$'") }
        index += 1
        let counts =
            switch scalar {
            case "*": PatternNode.Counts(lowerBound: 0, upperBound: nil)
            case "+": PatternNode.Counts(lowerBound: 1, upperBound: nil)
            case "?": PatternNode.Counts(lowerBound: 0, upperBound: 1)
            default: try counts()
            }
        // Whether a repetition is lazy makes no difference to whether a text matches.
        _ = take(if: "?")
        if let next = peek, "*+?{".unicodeScalars.contains(next) {
            throw objection("has two repetitions in a row; use a group")
        }
        return .repeated(node, counts)
    }

    private mutating func counts() throws(Pattern.Objection) -> PatternNode.Counts {
        let lower = try count()
        var upper: Int? = lower
        if take(if: ",") { upper = peek == "}" ? nil : try count() }
        guard take(if: "}") else { throw objection("has a '{' without '}'") }
        if let upper, upper < lower { throw objection("has a repetition from \(lower) to \(upper)") }
        return PatternNode.Counts(lowerBound: lower, upperBound: upper)
    }

    private mutating func count() throws(Pattern.Objection) -> Int {
        var digits = ""
        while let scalar = peek, ("0"..."9").contains(scalar) {
            digits.unicodeScalars.append(scalar)
            index += 1
        }
        guard let count = Int(digits), count <= Pattern.stepCountMax else {
            throw objection("needs a number up to \(Pattern.stepCountMax) in '{}'")
        }
        return count
    }

    private mutating func characterClass() throws(Pattern.Objection) -> ScalarSet {
        let isInverted = take(if: "^")
        var ranges: [ClosedRange<UInt32>] = []
        while let scalar = take() {
            if scalar == "]" {
                let set = ScalarSet(ranges)
                return isInverted ? set.inverted : set
            }
            let first = scalar == "\\" ? try escape(inClass: true) : .only(scalar)
            guard peek == "-", index + 1 < scalars.count, scalars[index + 1] != "]" else {
                ranges += first.ranges
                continue
            }
            index += 1
            let end = take() ?? "]"
            let last = end == "\\" ? try escape(inClass: true) : .only(end)
            guard let lower = Self.single(first), let upper = Self.single(last), lower <= upper else {
                throw objection("has a range in '[]' whose ends are not two characters in their order")
            }
            ranges.append(lower...upper)
        }
        throw objection("has a '[' without ']'")
    }

    /// The one member of a set; `nil` for a set of several.
    private static func single(_ set: ScalarSet) -> UInt32? {
        guard set.ranges.count == 1, set.ranges[0].count == 1 else { return nil }
        return set.ranges[0].lowerBound
    }

    private mutating func escape(inClass: Bool) throws(Pattern.Objection) -> ScalarSet {
        guard let scalar = take() else { throw objection("ends with '\\'") }
        switch scalar {
        case "d": return .digits
        case "D": return .digits.inverted
        case "w": return .word
        case "W": return .word.inverted
        case "s": return .blanks
        case "S": return .blanks.inverted
        case "t": return .only("\t")
        case "n": return .only("\n")
        case "r": return .only("\r")
        case "f": return .only("\u{0C}")
        case "v": return .only("\u{0B}")
        case "u":
            let end = min(index + 4, scalars.count)
            var digits = ""
            digits.unicodeScalars.append(contentsOf: scalars[index..<end])
            guard digits.count == 4, digits.allSatisfy(\.isHexDigit), let value = UInt32(digits, radix: 16),
                let found = Unicode.Scalar(value)
            else { throw objection("needs four hexadecimal digits of a character after '\\u'") }
            index = end
            return .only(found)
        case "-" where inClass: return .only("-")
        case _ where Self.special.contains(scalar): return .only(scalar)
        default: throw objection("has '\\\(scalar)', which is not supported")
        }
    }
}
