import Foundation
import TestSupport
import Testing

@testable import LocalCluster

/// A crash ends everything that the process started.
@Suite(.ownThreads) struct ClusterProcessTests {
    private static func start(_ script: String, _ environment: [String: String] = [:]) throws -> ClusterProcess {
        let log = FileManager.default.temporaryDirectory.appending(path: "fieldpost-\(UUID())").path
        return try ClusterProcess(
            ClusterProcess.Command(
                executable: "/bin/sh", arguments: ["-c", script],
                environment: environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }, logPath: log))
    }

    @Test func aCrashEndsTheProcessGroup() throws {
        let process = try Self.start("sleep 3600 & echo $!; kill -ABRT $$")
        defer { try? FileManager.default.removeItem(atPath: process.command.logPath ?? "") }
        #expect(process.waitForEnd(within: patienceMax) == .killed(signal: SIGABRT))
        let child = try #require(pid_t(process.logTail().trimmingCharacters(in: .whitespacesAndNewlines)))
        #expect(Self.hasEnded(child))
    }

    /// The signal is handled by the main thread, which sleeps, while others write.
    @Test func suspendedProcessWritesNothing() throws {
        let script = """
            exec python3 -c '
            import os, threading
            def write():
                while True: os.write(1, b"x")
            for _ in range(4): threading.Thread(target=write, daemon=True).start()
            threading.Event().wait()'
            """
        let process = try Self.start(script)
        let path = try #require(process.command.logPath)
        defer {
            process.kill9()
            try? FileManager.default.removeItem(atPath: path)
        }
        func size() throws -> Int {
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        }
        for _ in 0..<20 {
            let before = try size()
            while try size() == before { poll(nil, 0, 1) }
            process.signal(SIGSTOP)
            let suspended = try size()
            poll(nil, 0, 20)
            #expect(try size() == suspended)
            process.signal(SIGCONT)
        }
    }

    @Test func backtraceIsWrittenOnRequestOnly() throws {
        for (given, expected) in [([:], "enable=no"), (["SWIFT_BACKTRACE": "enable=yes"], "enable=yes")] {
            let process = try Self.start("echo $SWIFT_BACKTRACE", given)
            defer { try? FileManager.default.removeItem(atPath: process.command.logPath ?? "") }
            #expect(process.waitForEnd(within: patienceMax) == .exited(status: 0))
            #expect(process.logTail() == expected + "\n")
        }
    }

    /// Another process may get the process id of an owner that has ended: its start time differs.
    @Test func processesEndWithTheirOwnerAlthoughItsProcessIDIsReused() throws {
        let folder = try ClusterFolder("reuse")
        let process = try Self.start("sleep 3600", [ClusterFolder.mark: folder.markValue])
        defer { try? FileManager.default.removeItem(atPath: process.command.logPath ?? "") }
        try folder.watch(startTime: "1")
        #expect(process.waitForEnd(within: patienceMax) == .killed(signal: SIGKILL))
        // A folder that is released is removed, and then the watcher ends without a search.
        withExtendedLifetime(folder) {}
    }

    /// Waits until a process has ended, or is a zombie.
    private static func hasEnded(_ process: pid_t) -> Bool {
        let deadline = ContinuousClock.now + patienceMax
        while ContinuousClock.now < deadline {
            let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            if status?.contains(") Z ") ?? true { return true }
            poll(nil, 0, 5)
        }
        return false
    }
}
