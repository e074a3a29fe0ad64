import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// `workbench up` in two folders at the same moment: each has ports of its own, and waits for its own processes.
    @Test(.timeLimit(.minutes(10))) func twoInstallationsStartedAtOnceShareNoPort() async throws {
        let folder = try ClusterFolder("up")
        let starts = try ["one", "two"].map { name in
            let path = "\(folder.path)/\(name)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            return try ClusterProcess(
                ClusterProcess.Command(
                    executable: "/bin/sh",
                    arguments: [
                        "-c", "cd \"$0\" && exec \"$1\" up --no-demo", path, LocalCluster.executables + "/workbench",
                    ],
                    environment: ["PATH": "/usr/bin:/bin", ClusterFolder.mark: folder.markValue],
                    logPath: folder.logPath(name)))
        }
        defer { for start in starts { start.kill9() } }
        for start in starts {
            try await eventually("its services are ready") {
                if let end = start.end { throw ClusterFailure("workbench up ended (\(end)): \(start.logTail())") }
                return start.logTail(bytesMax: 10_000).contains("field app") ? nil : start.logTail(bytesMax: 500)
            }
        }
        let ports = try ["one", "two"].map { name in
            try String(contentsOfFile: "\(folder.path)/\(name)/.fieldpost/ports", encoding: .utf8)
                .split(separator: "\n").map { $0.split(separator: "=")[1] }
        }
        #expect(ports[0].count > 20 && Set(ports[0]).isDisjoint(with: ports[1]), "\(ports)")
        // Ctrl-C.
        for start in starts { start.signal(SIGINT) }
        for start in starts {
            let end = await onOwnThread { start.waitForEnd(within: .seconds(240)) }
            #expect(end == .exited(status: 130), "\(start.logTail())")
        }
    }
}
