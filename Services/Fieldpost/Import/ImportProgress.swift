import Essentials

/// A line of progress, if standard error is a terminal.
struct ImportProgress {
    private let bytesTotal: Int?
    private let isShown = Terminal.showsProgress
    private let start = SteadyClock.nanoseconds()
    private var shownAt: Int64 = 0

    private static let intervalNanoseconds: Int64 = 200_000_000
    private static let barLength = 30

    /// - Parameter bytesTotal: The size of the input; `nil` if unknown.
    init(bytesTotal: Int?) { self.bytesTotal = bytesTotal }

    /// Called after each line or batch; prints a few times per second.
    mutating func show(bytes: Int, lines: Int, problems: Int) {
        guard isShown else { return }
        let now = SteadyClock.nanoseconds()
        guard now - shownAt >= Self.intervalNanoseconds else { return }
        shownAt = now
        Terminal.showProgress(
            Self.text(bytes: bytes, of: bytesTotal, lines: lines, problems: problems, nanoseconds: now - start))
    }

    /// Clears the line.
    func end() {
        if shownAt > 0 { Terminal.showProgress("") }
    }

    static func text(bytes: Int, of bytesTotal: Int?, lines: Int, problems: Int, nanoseconds: Int64) -> String {
        let perSecond = nanoseconds > 0 ? Int(Double(lines) / Double(nanoseconds) * 1e9) : 0
        var text = "\(lines) lines, \(perSecond) per second" + (problems > 0 ? ", \(problems) invalid" : "")
        if let bytesTotal, bytesTotal > 0 {
            let done = min(bytes, bytesTotal)
            let length = done * barLength / bytesTotal
            let bar = String(repeating: "#", count: length) + String(repeating: ".", count: barLength - length)
            text = "[\(bar)] \(done * 100 / bytesTotal) %, " + text
        }
        return text
    }
}
