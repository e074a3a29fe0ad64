import Essentials
package import Foundation
import Synchronization

/// A program that runs as a child of this process, in a process group of its own, with its output in a log file.
///
/// Foundation's `Process` is not used: its `waitUntilExit` hangs while a grandchild holds an inherited descriptor.
package final class ClusterProcess: Sendable {
    /// The command line and the environment of a program.
    package struct Command: Sendable {
        /// An absolute path.
        package var executable: String
        package var arguments: [String]
        /// All of the program's environment: nothing is inherited. Unless it sets `SWIFT_BACKTRACE`, a crash ends the
        /// program at once: otherwise Swift's runtime keeps the process, and its ports, while it writes a backtrace.
        package var environment: [String: String]
        /// Its output and its errors are appended to this file; `nil`: they are this process's.
        package var logPath: String?

        package init(
            executable: String, arguments: [String] = [], environment: [String: String] = [:], logPath: String?
        ) {
            self.executable = executable
            self.arguments = arguments
            self.environment = environment
            self.logPath = logPath
        }
    }

    /// The end of a program.
    package enum End: Equatable, Sendable {
        case exited(status: Int32)
        case killed(signal: Int32)

        /// The status as in a shell: 128 plus the number of a signal.
        package var status: Int32 {
            switch self {
            case .exited(let status): status
            case .killed(let signal): 128 + signal
            }
        }
    }

    package let command: Command
    /// The process's number; its process group has the same.
    package let id: pid_t
    private let ending = Mutex<End?>(nil)
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the program.
    package init(_ command: Command) throws(ClusterFailure) {
        self.command = command
        let id = try Self.spawn(command)
        self.id = id
        Thread.detachNewThread { [self] in
            let end = Self.wait(for: id)
            ending.withLock { $0 = end }
            ended.signal()
        }
    }

    /// The end of the program; `nil` while it runs.
    package var end: End? { ending.withLock { $0 } }
    package var isRunning: Bool { end == nil }

    /// Sends a signal to the program unless it has ended: its number may belong to another process afterwards.
    ///
    /// SIGSTOP returns when none of its threads runs: one thread stops the others, which continue until it gets
    /// processor time.
    package func signal(_ number: Int32) {
        ending.withLock { end in
            if end == nil { kill(id, number) }
        }
        guard number == SIGSTOP else { return }
        let pause = DispatchSemaphore(value: 0)
        while isRunning, !ProcessTable.isSuspended(id) { _ = pause.wait(timeout: .now() + .milliseconds(1)) }
    }

    /// Kills the program and its process group, as a crash does: without notice, flush or close.
    package func kill9() {
        ending.withLock { end in
            if end == nil { killpg(id, SIGKILL) }
        }
        waitForEnd()
    }

    /// Sends SIGTERM, and waits.
    ///
    /// - Returns: `nil` if it still runs after `within`.
    package func terminate(within: Duration) -> End? {
        signal(SIGTERM)
        return waitForEnd(within: within)
    }

    /// Blocks until it has ended.
    @discardableResult
    package func waitForEnd(within: Duration? = nil) -> End? {
        let deadline = within.map { DispatchTime.now() + $0.inSeconds } ?? .distantFuture
        guard case .success = ended.wait(timeout: deadline) else { return nil }
        ended.signal()
        return end
    }

    /// The size of its log, in bytes.
    package var logSize: Int {
        let attributes = command.logPath.flatMap { try? FileManager.default.attributesOfItem(atPath: $0) }
        return attributes?[.size] as? Int ?? 0
    }

    /// The end of its log.
    package func logTail(bytesMax: Int = 4_000) -> String {
        guard let path = command.logPath, let data = FileManager.default.contents(atPath: path) else { return "" }
        return String(decoding: data.suffix(bytesMax), as: UTF8.self)
    }

    // MARK: The system's calls

    /// Waits until the program has ended, and ends what is left of its process group: what a crash started, such as
    /// `swift-backtrace`, would keep the program's ports.
    private static func wait(for id: pid_t) -> End {
        var info = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(id), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // Until it is reaped, no other process gets its number.
        killpg(id, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(id, &status, 0) < 0 {
            if errno != EINTR { return .exited(status: -1) }
        }
        let signal = status & 0x7f
        return signal == 0 ? .exited(status: (status >> 8) & 0xff) : .killed(signal: signal)
    }

    private static func spawn(_ command: Command) throws(ClusterFailure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        if let path = command.logPath {
            unsafe posix_spawn_file_actions_addopen(
                &actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_APPEND, 0o644)
            unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        }
        for descriptor in openDescriptors() {
            unsafe posix_spawn_file_actions_addclose(&actions, Int32(descriptor))
        }

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))

        var arguments = unsafe ([command.executable] + command.arguments).map { unsafe strdup($0) } + [nil]
        let variables = ["SWIFT_BACKTRACE": "enable=no"].merging(command.environment) { $1 }
        var environment = unsafe variables.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            unsafe arguments.forEach { unsafe free($0) }
            unsafe environment.forEach { unsafe free($0) }
        }
        var id = pid_t()
        let code = unsafe posix_spawn(&id, command.executable, &actions, &attributes, &arguments, &environment)
        guard code == 0 else { throw ClusterFailure("\(command.executable) cannot be started (errno \(code))") }
        return id
    }
}

/// The descriptors that may be open in addition to the standard three. Not all libraries set close-on-exec.
///
/// Another thread may open some meanwhile. They get the next free numbers; closing a number without one has no effect.
private func openDescriptors() -> some Sequence<Int> {
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    let highest = names.compactMap { Int($0) }.max() ?? 0
    return (Int(STDERR_FILENO) + 1)..<min(highest + 100, Int(limit.rlim_cur))
}

/// A failure of a cluster or of a scenario on it.
package struct ClusterFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
