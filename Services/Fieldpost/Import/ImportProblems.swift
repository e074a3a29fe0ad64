import CommandLineSupport

/// The lines that were rejected: their number, and the first ones.
struct ImportProblems {
    /// A rejected line and the reason.
    struct Problem: Encodable {
        let line: Int
        let reason: String
    }

    private let retainedCountMax: Int
    private(set) var count = 0
    private(set) var retained: [Problem] = []

    init(retainedCountMax: Int) { self.retainedCountMax = retainedCountMax }

    mutating func add(_ problem: some Error, at line: Int) { add("\(problem)", at: line) }

    mutating func add(_ reason: String, at line: Int) {
        count += 1
        // Lines of a batch are rejected after later lines that were not batched.
        guard retained.count < retainedCountMax || line < (retained.last?.line ?? 0) else { return }
        let index = retained.lastIndex { $0.line <= line }.map { $0 + 1 } ?? 0
        retained.insert(Problem(line: line, reason: reason), at: index)
        if retained.count > retainedCountMax { retained.removeLast() }
    }

    /// Returns a line for each retained problem, and one with the number of further ones; each begins with `prefix`.
    func text(as prefix: String = "") -> String {
        let lines = retained.map { "\(prefix)line \($0.line): \(Table.oneLine($0.reason))\n" }.joined()
        return count > retained.count ? lines + "\(prefix)and \(count - retained.count) more\n" : lines
    }
}

/// The reason why a line is rejected, in a sentence.
struct ImportProblem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
