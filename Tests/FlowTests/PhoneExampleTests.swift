import Foundation
import LocalCluster
import Model
import Testing

extension FlowTests {
    /// `examples/phone.sh` releases an entry in a demo's environment.
    @Test(.timeLimit(.minutes(20))) func theExampleOfAPhoneHasItsEntryReleased() async throws {
        try await withCluster("phone") { cluster in
            let demo = try cluster.startDemo(["--people", "2"])
            try await demo.expectNoDifferences()
            let phone = try ClusterProcess(
                ClusterProcess.Command(
                    executable: "/bin/bash", arguments: [projectRoot.appendingPathComponent("examples/phone.sh").path],
                    environment: [
                        "PATH": "/usr/bin:/bin", "GATEWAY_URL": cluster.gatewayURL, "IDENTITY_URL": cluster.identityURL,
                        "SAP_URL": cluster.sapURL, ClusterFolder.mark: cluster.folder.path,
                    ], logPath: cluster.folder.path + "/phone.log"))
            // What follows the stream in the background is of its process group.
            defer { phone.kill9() }
            try await eventually("the entry is answered", within: .seconds(120)) {
                phone.isRunning ? phone.logTail() : nil
            }
            let output = phone.logTail(bytesMax: 20_000)
            #expect(phone.end == .exited(status: 0), "\(output)")
            #expect(output.contains(#"{"realm":"/common","permissions":["read","write"]}"#), "\(output)")
            // The stream has the newest state of the entry: an intermediate one may be skipped, its status line not.
            #expect(output.contains(/"TimeEntryStatus",\d+,"submitted",null/), "\(output)")
            #expect(output.contains(/"TimeEntry",\d+,"released",null/), "\(output)")
            #expect(output.contains("survey #"), "SAP has the note with its marker: \(output)")
        }
    }
}
