import Foundation

/// A folder for what the suite's processes keep: it goes, and whatever was started in it, when its owner does.
///
/// A shell watches this process from a session of its own. When this process ends without having removed the folder,
/// even by `kill -9`, the shell kills every process that carries the folder's mark in its environment.
package final class ClusterFolder: Sendable {
    package let path: String

    /// The environment variable that marks a process as this folder's.
    package static let mark = "SUITE_FOLDER"

    /// - Parameter name: Part of the folder's name.
    package init(_ name: String) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("fieldpost-\(name)-\(getpid())-\(UUID().uuidString.prefix(8).lowercased())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // PostgreSQL runs as another user: it must be let through.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        path = folder.path
        try runToEnd("setsid", ["sh", "-c", "sh \"$0\" \"$1\" \"$2\" &", try Self.watcher(path), path, "\(getpid())"])
    }

    deinit { remove() }

    /// Removes the folder; what still runs in it must have been ended before. With `SUITE_KEEP` in the environment the
    /// folder stays, for a look at logs and data.
    package func remove() {
        if ProcessInfo.processInfo.environment["SUITE_KEEP"] != nil { return }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The script that watches. `$1`: the folder, `$2`: the process.
    private static func watcher(_ folder: String) throws -> String {
        let script = """
            while [ -d "$1" ] && kill -0 "$2"; do sleep 1; done
            [ -d "$1" ] || exit 0
            for process in /proc/[0-9]*; do
                grep -qzxF "\(mark)=$1" "$process/environ" && kill -9 "${process#/proc/}"
            done
            sleep 1
            [ -n "$SUITE_KEEP" ] || rm -rf "$1"
            """
        let path = folder + "/watch"
        try script.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}

/// Runs a program of the system and waits for its end, without its output.
///
/// - Throws: `ClusterFailure` with the end of what it said, when its exit status is not 0.
package func runToEnd(_ program: String, _ arguments: [String], within: Duration = .seconds(240)) throws {
    let log = FileManager.default.temporaryDirectory.appendingPathComponent("fieldpost-\(UUID().uuidString).log").path
    defer { try? FileManager.default.removeItem(atPath: log) }
    let inherited = ProcessInfo.processInfo.environment.filter { ["PATH", "SUITE_KEEP"].contains($0.key) }
    let process = try ClusterProcess(
        ClusterProcess.Command(
            executable: "/usr/bin/env", arguments: [program] + arguments, environment: inherited, logPath: log))
    guard let end = process.waitForEnd(within: within) else {
        process.kill9()
        throw ClusterFailure("\(program) did not end within \(within): \(process.logTail())")
    }
    guard end == .exited(status: 0) else { throw ClusterFailure("\(program) failed (\(end)): \(process.logTail())") }
}
