import FoundationEssentials
import Glibc

/// Output for terminals only.
enum Terminal {
    enum Colour: Int {
        case red = 31
        case green = 32
        case yellow = 33
    }

    /// Returns the text in colour if standard output is a terminal, unless `NO_COLOR` is set (https://no-color.org).
    static func coloured(_ text: String, _ colour: Colour) -> String {
        let isPlain = ProcessInfo.processInfo.environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        guard !isPlain, isatty(STDOUT_FILENO) == 1 else { return text }
        return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}
