import Foundation

/// The processes of this machine, from `/proc` (proc(5)).
package enum ProcessTable {
    /// The processes whose parent is `parent`.
    package static func children(of parent: Int32) -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { stat(of: $0)?.dropFirst().first == "\(parent)" }
    }

    /// The fields of `/proc/PID/stat` from the third, the state, which the parent follows. The name before them may
    /// contain anything, so they are read after its last parenthesis.
    package static func stat(of process: Int32) -> [Substring]? { stat(of: "\(process)") }

    private static func stat(of process: String) -> [Substring]? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }

    /// Whether none of the process's threads runs: all were stopped by a signal, or have ended.
    static func isSuspended(_ process: Int32) -> Bool {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return threads.allSatisfy { thread in
            ["T", "t", "X", "Z", nil].contains(stat(of: "\(process)/task/\(thread)")?.first)
        }
    }

    /// Whether the process still holds resources; a zombie does not.
    static func isAlive(_ process: Int32) -> Bool {
        guard let state = stat(of: process)?.first else { return false }
        return state != "Z" && state != "X"
    }
}
