import Foundation

/// A folder for the files of a cluster's processes, which end with the process that made the folder.
///
/// A shell watches this process from a session of its own. When this process ends without having removed the folder,
/// even by `kill -9`, the shell kills every process that carries the folder's mark in its environment.
package final class ClusterFolder: Sendable {
    package let path: String
    /// Whether it stays when its owner goes.
    package let isLasting: Bool
    /// The value of the environment variable `mark` in its processes.
    package let markValue: String
    private let lock: Int32?

    /// The environment variable that marks a process as this folder's.
    package static let mark = "CLUSTER_FOLDER"

    /// A folder that goes when its owner does.
    ///
    /// - Parameter name: Part of the folder's name.
    package init(_ name: String) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("fieldpost-\(name)-\(getpid())-\(UUID().uuidString.prefix(8).lowercased())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // PostgreSQL runs as another user: it must be let through.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        path = folder.path
        isLasting = false
        markValue = folder.path
        lock = nil
        try watch()
    }

    /// A folder that stays, with its logs in `log/` and the numbers of its processes in `pid/`.
    ///
    /// - Throws: ``ClusterFailure`` when another process has it.
    package init(lasting path: String) throws {
        for folder in ["log", "pid"] {
            try FileManager.default.createDirectory(
                atPath: "\(path)/\(folder)", withIntermediateDirectories: true)
        }
        let lock = unsafe open(path + "/lock", O_CREAT | O_WRONLY | O_CLOEXEC, 0o644)
        guard lock >= 0 else { throw ClusterFailure("\(path)/lock cannot be written (errno \(errno))") }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw ClusterFailure("another deploy/up runs here already")
        }
        self.path = path
        isLasting = true
        // The watcher of an owner that has just ended must not find the processes of the next one.
        markValue = "\(path) \(getpid())"
        self.lock = lock
        try watch()
    }

    deinit { remove() }

    /// Removes a temporary folder, whose processes must have ended. With `CLUSTER_KEEP` in the environment it is kept,
    /// with logs and data.
    package func remove() {
        if isLasting || ProcessInfo.processInfo.environment["CLUSTER_KEEP"] != nil { return }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The file that a process of this name writes to.
    package func logPath(_ name: String) -> String { isLasting ? "\(path)/log/\(name).log" : "\(path)/\(name).log" }

    /// Starts a process in this folder; a permanent folder records its process id, and its log the time.
    func start(_ command: ClusterProcess.Command, name: String) throws(ClusterFailure) -> ClusterProcess {
        guard isLasting else { return try ClusterProcess(command) }
        if let log = command.logPath, let file = unsafe fopen(log, "a") {
            unsafe fputs("--- started \(Date().formatted(.iso8601))\n", file)
            unsafe fclose(file)
        }
        let process = try ClusterProcess(command)
        try? Data("\(process.id)\n".utf8).write(to: URL(fileURLWithPath: "\(path)/pid/\(name)"))
        return process
    }

    /// Starts the shell that kills the processes of this folder when the owner has ended.
    ///
    /// - Parameters:
    ///   - owner: The owner's process id.
    ///   - startTime: The owner's start time in clock ticks since boot (field 22 of `/proc/PID/stat`), because a
    ///     process id alone is reused; `nil`: that of the running process.
    func watch(_ owner: pid_t = getpid(), startTime: String? = nil) throws {
        let script = """
            startTime() {
                read -r stat <"/proc/$1/stat" || return
                set -- ${stat##*) }
                echo "${20}"
            }
            begin=${5:-$(startTime "$2")}
            while [ -d "$1" ] && [ "$(startTime "$2")" = "$begin" ]; do sleep 1; done
            [ -d "$1" ] || exit 0
            # The environment of a process that is executing a program just now cannot be read: search several times.
            left=3
            while [ "$left" -gt 0 ]; do
                left=$((left - 1))
                for process in /proc/[0-9]*; do
                    grep -qzxF "\(Self.mark)=$3" "$process/environ" && kill -9 "${process#/proc/}" && left=3
                done
                sleep 1
            done
            [ "$4" = go ] || exit 0
            [ -n "$CLUSTER_KEEP" ] || rm -rf "$1"
            """
        let file = path + "/watch"
        try script.write(toFile: file, atomically: true, encoding: .utf8)
        // Without `--wait`, setsid may end before its child has a session of its own, and the child with its group.
        try runToEnd(
            "setsid",
            [
                "--wait", "sh", "-c", "sh \"$0\" \"$@\" &", file, path, "\(owner)", markValue,
                isLasting ? "stay" : "go", startTime ?? "",
            ])
    }
}

/// Runs a system program, and waits for its end.
///
/// - Returns: Its output.
/// - Throws: `ClusterFailure` with the end of its output, if its exit status is not 0.
@discardableResult
package func runToEnd(
    _ program: String, _ arguments: [String], within: Duration = .seconds(240)
) throws -> String {
    let log = FileManager.default.temporaryDirectory.appendingPathComponent("fieldpost-\(UUID().uuidString).log").path
    defer { try? FileManager.default.removeItem(atPath: log) }
    let inherited = ProcessInfo.processInfo.environment.filter { ["PATH", "CLUSTER_KEEP"].contains($0.key) }
    let process = try ClusterProcess(
        ClusterProcess.Command(
            executable: "/usr/bin/env", arguments: [program] + arguments, environment: inherited, logPath: log))
    guard let end = process.waitForEnd(within: within) else {
        process.kill9()
        throw ClusterFailure("\(program) did not end within \(within): \(process.logTail())")
    }
    guard end == .exited(status: 0) else { throw ClusterFailure("\(program) failed (\(end)): \(process.logTail())") }
    return process.logTail(bytesMax: 100_000)
}
