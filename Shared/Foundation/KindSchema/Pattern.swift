/// A regular expression whose cost is bounded: the product of its size and the text's length.
///
/// The syntax is the part of ECMA-262 that JSON Schema recommends: characters, `.`, classes, groups, `|`, `*`, `+`,
/// `?`, `{n,m}`, `^` and `$`. It has no references to groups and no lookaround. As in JSON Schema, a match may be
/// anywhere in the text. A text is a sequence of Unicode scalars.
package struct Pattern: Equatable, Sendable {
    /// Maximum length of a pattern, in Unicode scalars.
    package static let lengthMax = 200
    /// Maximum number of steps: each counted repetition is written out.
    package static let stepCountMax = 1_000

    /// A pattern that is not supported, described for its author.
    package struct Objection: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Numbers are small: a schema file may have many steps.
    enum Step: Equatable, Sendable {
        /// One of the sets, by its index.
        case scalar(Int16)
        /// Continues at both.
        case fork(Int16, Int16)
        case start
        case end
        case match
    }

    /// The pattern as it was written.
    package let text: String
    private let steps: [Step]
    private let sets: [ScalarSet]

    /// Compiles a pattern.
    package init(_ text: String) throws(Objection) {
        self.text = text
        guard text.unicodeScalars.count <= Self.lengthMax else {
            throw Objection(description: "is longer than \(Self.lengthMax) characters")
        }
        var parser = PatternParser(text)
        var compiler = PatternCompiler()
        try compiler.append(try parser.parse())
        compiler.steps.append(.match)
        (steps, sets) = (compiler.steps.map(\.self), compiler.sets)
    }

    /// Whether a part of the text matches.
    package func matches(_ text: String) -> Bool {
        var (current, next) = (Threads(steps.count), Threads(steps.count))
        let scalars = Array(text.unicodeScalars)
        for index in 0...scalars.count {
            // A match may begin anywhere.
            add(0, to: &current, index, scalars.count)
            if current.isMatched { return true }
            guard index < scalars.count else { break }
            next.clear()
            for step in current.list {
                guard case .scalar(let set) = steps[step], sets[Int(set)].contains(scalars[index]) else { continue }
                add(step + 1, to: &next, index + 1, scalars.count)
            }
            swap(&current, &next)
        }
        return false
    }

    /// The steps that are reached at one position of the text, each once.
    private struct Threads {
        var list: [Int] = []
        var isMatched = false
        private var isListed: [Bool]

        init(_ count: Int) { isListed = Array(repeating: false, count: count) }

        mutating func clear() {
            for step in list { isListed[step] = false }
            list.removeAll(keepingCapacity: true)
            isMatched = false
        }

        mutating func insert(_ step: Int) -> Bool {
            if isListed[step] { return false }
            isListed[step] = true
            list.append(step)
            return true
        }
    }

    private func add(_ first: Int, to threads: inout Threads, _ index: Int, _ count: Int) {
        var open = [first]
        while let step = open.popLast() {
            guard threads.insert(step) else { continue }
            switch steps[step] {
            case .scalar: break
            case .fork(let one, let other): open += [Int(other), Int(one)]
            case .start: if index == 0 { open.append(step + 1) }
            case .end: if index == count { open.append(step + 1) }
            case .match: threads.isMatched = true
            }
        }
    }
}

/// Writes the steps of a parsed pattern.
struct PatternCompiler {
    var steps: [Pattern.Step] = []
    /// The sets of the steps, each once.
    var sets: [ScalarSet] = []
    /// Groups without content have no steps, but their repetitions cost time, too.
    private var nodeCount = 0

    /// The number of the next step.
    private var end: Int16 { Int16(steps.count) }

    mutating func append(_ node: PatternNode) throws(Pattern.Objection) {
        nodeCount += 1
        guard max(steps.count, nodeCount) < Pattern.stepCountMax else {
            throw Pattern.Objection(
                description: "has more than \(Pattern.stepCountMax) steps when its repetitions are written out")
        }
        switch node {
        case .set(let set):
            let index = sets.firstIndex(of: set) ?? sets.endIndex
            if index == sets.endIndex { sets.append(set) }
            steps.append(.scalar(Int16(index)))
        case .start: steps.append(.start)
        case .end: steps.append(.end)
        case .sequence(let nodes): for node in nodes { try append(node) }
        case .choice(let nodes):
            // Each choice ends with a jump to the end: a fork whose branches are equal.
            var ends: [Int16] = []
            for (index, node) in nodes.enumerated() {
                let fork = end
                if index < nodes.count - 1 { steps.append(.fork(fork + 1, fork)) }
                try append(node)
                guard index < nodes.count - 1 else { break }
                ends.append(end)
                steps.append(.fork(0, 0))
                steps[Int(fork)] = .fork(fork + 1, end)
            }
            for jump in ends { steps[Int(jump)] = .fork(end, end) }
        case .repeated(let node, let range):
            for _ in 0..<range.lowerBound { try append(node) }
            guard let upper = range.upperBound else {
                let fork = end
                steps.append(.fork(fork + 1, fork))
                try append(node)
                steps.append(.fork(fork, fork))
                steps[Int(fork)] = .fork(fork + 1, end)
                return
            }
            var forks: [Int16] = []
            for _ in range.lowerBound..<upper {
                forks.append(end)
                steps.append(.fork(end + 1, 0))
                try append(node)
            }
            for fork in forks { steps[Int(fork)] = .fork(fork + 1, end) }
        }
    }
}
