/// What could not be imported: all of it counted, the first ones kept.
struct ImportProblems {
    /// A line, or a row by the line that it begins in, and why it is not in.
    struct Problem: Encodable {
        let line: Int
        let reason: String
    }

    private let keptCountMax: Int
    private(set) var count = 0
    private(set) var kept: [Problem] = []

    init(keptCountMax: Int) { self.keptCountMax = keptCountMax }

    mutating func add(_ problem: some Error, at line: Int) { add("\(problem)", at: line) }

    mutating func add(_ reason: String, at line: Int) {
        count += 1
        // Those of a batch are told after those of the lines behind it.
        guard kept.count < keptCountMax || line < (kept.last?.line ?? 0) else { return }
        let place = kept.lastIndex { $0.line <= line }.map { $0 + 1 } ?? 0
        kept.insert(Problem(line: line, reason: reason), at: place)
        if kept.count > keptCountMax { kept.removeLast() }
    }

    /// A line for each that is kept, and how many more there are.
    var text: String { text(as: "") }

    /// The same, each line after a word.
    func text(as sort: String) -> String {
        let lines = kept.map { "\(sort)line \($0.line): \(Self.oneLine($0.reason))\n" }.joined()
        return count > kept.count ? lines + "\(sort)and \(count - kept.count) more\n" : lines
    }

    /// A control character of the file must not reach the terminal.
    private static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
