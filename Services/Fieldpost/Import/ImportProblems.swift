/// The lines that were rejected: their number, and the first ones.
struct ImportProblems {
    /// A rejected line (or the first line of a row) and the reason.
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

    /// One line for each retained problem, and the number of further ones.
    var text: String { text(as: "") }

    /// The same, with a prefix for each line.
    func text(as prefix: String) -> String {
        let lines = retained.map { "\(prefix)line \($0.line): \(Self.oneLine($0.reason))\n" }.joined()
        return count > retained.count ? lines + "\(prefix)and \(count - retained.count) more\n" : lines
    }

    /// Replaces control characters of the file, which must not reach the terminal.
    private static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
