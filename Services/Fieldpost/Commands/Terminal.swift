import ArgumentParser
import Foundation

/// Writes a text to standard error.
func printError(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }

/// Input and output of terminals.
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

    /// Whether standard error is a terminal, so that progress is displayed.
    static var showsProgress: Bool { isatty(STDERR_FILENO) == 1 }

    /// Overwrites the line of progress on a terminal; an empty text clears it.
    static func showProgress(_ text: String) {
        if showsProgress { printError("\r\u{1B}[K" + text) }
    }

    /// Prompts the operator to confirm an action by typing an answer.
    ///
    /// - Parameters:
    ///   - refusal: The failure after another answer.
    ///   - options: The options that skip the prompt.
    static func confirm(_ prompt: String, answer: String = "yes", refusal: String, options: String = "--yes") throws {
        guard isatty(STDIN_FILENO) == 1 else {
            throw ValidationError("standard input is not a terminal: give \(options)")
        }
        print(prompt, terminator: " ")
        fflush(nil)
        guard readLine() == answer else { throw CommandFailure(refusal) }
    }
}
