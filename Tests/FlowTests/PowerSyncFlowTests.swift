import Foundation
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// The JavaScript connector for PowerSync SDKs, in Node with SQLite, against running services.
    @Test(.timeLimit(.minutes(20))) func powerSyncConnectorWorksWithAnInstallation() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway]
        try await withCluster("powersync", options) { cluster in
            let organisation = SmallOrganisation(peopleCount: 1)
            try await organisation.load(into: cluster, invites: false)
            let email = organisation.people[0].email
            let script = projectRoot.appendingPathComponent("Tests/PowerSyncConnectorTests/installation.mjs").path
            let device = try ClusterProcess(
                ClusterProcess.Command(
                    executable: "/usr/bin/env", arguments: ["node", script],
                    environment: [
                        "PATH": "/usr/local/bin:/usr/bin:/bin", "GATEWAY_URL": cluster.gatewayURL, "EMAIL": email,
                        "IDENTITY_URL": cluster.identityURL, ClusterFolder.mark: cluster.folder.path,
                    ], logPath: cluster.folder.path + "/device.log"))
            defer { device.kill9() }
            try await eventually("the device ends", within: .seconds(600)) {
                device.isRunning ? device.logTail() : nil
            }
            #expect(device.end == .exited(status: 0), "\(device.logTail(bytesMax: 20_000))")
        }
    }
}
