import Foundation
import LocalCluster
import Postgres
import Testing

extension FlowTests {
    /// `workbench up` in two folders at the same moment: each has ports of its own, and waits for its own processes.
    @Test(.timeLimit(.minutes(10))) func twoInstallationsStartedAtOnceShareNoPort() async throws {
        let folder = try ClusterFolder("up")
        let starts = try ["one", "two"].map { try start($0, in: folder) }
        defer { for start in starts { start.kill9() } }
        for start in starts {
            try await waitUntilReady(start)
        }
        let ports = try ["one", "two"].map { name in
            try String(contentsOfFile: "\(folder.path)/\(name)/.fieldpost/ports", encoding: .utf8)
                .split(separator: "\n").map { $0.split(separator: "=")[1] }
        }
        #expect(ports[0].count > 20 && Set(ports[0]).isDisjoint(with: ports[1]), "\(ports)")
        // Ctrl-C.
        for start in starts { start.signal(SIGINT) }
        for start in starts { await expectEnd(start) }
    }

    /// The sandbox's broker creates no topics on request, and the second start checks all topics.
    @Test(.timeLimit(.minutes(10))) func secondStartHasTheTopicsOfOwnKinds() async throws {
        let folder = try ClusterFolder("up-again")
        let first = try start("one", in: folder)
        defer { first.kill9() }
        try await waitUntilReady(first)
        let lines = try String(contentsOfFile: "\(folder.path)/one/.fieldpost/environment", encoding: .utf8)
        let setting = try #require(lines.firstMatch(of: /FIELDPOST_DATABASE_URL='?([^'\n]+)/))
        var connection = try Connection(String(setting.output.1))
        try connection.run([
            "INSERT INTO realm.environment (name) VALUES ('acme')",
            "INSERT INTO realm.kind (number, name) VALUES (1000, 'Inspection')",
            """
            INSERT INTO realm.own_kind (environment_id, kind, topic)
            SELECT id, 1000, 'own.acme.inspections' FROM realm.environment
            """,
        ])
        first.signal(SIGINT)
        await expectEnd(first)
        let second = try start("one", in: folder, log: "second")
        defer { second.kill9() }
        try await waitUntilReady(second)
        second.signal(SIGINT)
        await expectEnd(second)
    }

    private func start(_ name: String, in folder: ClusterFolder, log: String? = nil) throws -> ClusterProcess {
        let path = "\(folder.path)/\(name)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return try ClusterProcess(
            ClusterProcess.Command(
                executable: "/bin/sh",
                arguments: [
                    "-c", "cd \"$0\" && exec \"$1\" up --no-demo", path, LocalCluster.executables + "/workbench",
                ],
                environment: ["PATH": "/usr/bin:/bin", ClusterFolder.mark: folder.markValue],
                logPath: folder.logPath(log ?? name)))
    }

    private func waitUntilReady(_ start: ClusterProcess) async throws {
        try await eventually("its services are ready") {
            if let end = start.end { throw ClusterFailure("workbench up ended (\(end)): \(start.logTail())") }
            return start.logTail(bytesMax: 10_000).contains("field app") ? nil : start.logTail(bytesMax: 500)
        }
    }

    private func expectEnd(_ start: ClusterProcess) async {
        let end = await onOwnThread { start.waitForEnd(within: .seconds(240)) }
        #expect(end == .exited(status: 130), "\(start.logTail())")
    }
}
