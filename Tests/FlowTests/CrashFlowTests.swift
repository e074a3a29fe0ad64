import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// Swift's runtime would write a backtrace first, for minutes, while the process and its ports stay.
    @Test(.timeLimit(.minutes(20))) func aCrashFreesPortsAtOnce() async throws {
        var options = LocalCluster.Options.withoutGateway
        options.services = [.relay]
        try await withCluster("crash", options) { cluster in
            let relay = try #require(cluster.process(.relay))
            let port = try #require(URL(string: cluster.adminURL(.relay))?.port)
            #expect(try isClosedOnExec(port, of: relay.id))
            for part in [LocalCluster.Part.broker, .relay] {
                let process = try #require(cluster.process(part))
                process.signal(SIGABRT)
                let end = await onOwnThread { process.waitForEnd(within: .seconds(240)) }
                #expect(end == .killed(signal: SIGABRT))
                #expect(!process.logTail().contains("Backtrac"), "\(process.logTail())")
                #expect(killpg(process.id, 0) == -1 && errno == ESRCH)
                try cluster.start(part)
                try await cluster.waitUntilReady(part)
            }
        }
    }
}

/// Whether a process's listener on a port is closed in programs that the process starts.
///
/// Source: proc(5), `/proc/pid/fdinfo` (flags in octal digits).
private func isClosedOnExec(_ port: Int, of process: pid_t) throws -> Bool {
    let sockets = Ports.listeners(on: port)
    let folder = "/proc/\(process)/"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder + "fd")
    let name = try #require(
        names.first { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "fd/" + name)
            return target.map(sockets.contains) ?? false
        })
    let info = try String(contentsOfFile: folder + "fdinfo/" + name, encoding: .utf8).split(separator: "\n")
    let flags = info.first { $0.hasPrefix("flags:") }?.split(separator: "\t").last.flatMap { Int32($0, radix: 8) }
    return try #require(flags) & O_CLOEXEC != 0
}
