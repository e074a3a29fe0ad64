import Foundation
import HTTPClient
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// `promtool` accepts the metrics of every service.
    @Test(.timeLimit(.minutes(20))) func promtoolIsSilentAboutEveryServicesMetrics() async throws {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services
        let promtool = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(".build/promtool").path
        try #require(FileManager.default.isExecutableFile(atPath: promtool), "no \(promtool); deploy/test makes it")
        try await withCluster("metrics", options) { cluster in
            try await cluster.startDemo(["--people", "2"]).expectNoDifferences()
            let client = Client()
            defer { client.shutDown() }
            for part in options.services {
                let response = try await client.send(Request(cluster.adminURL(part) + "/metrics"))
                let path = "\(cluster.folder.path)/\(part.name).metrics"
                try Data(response.body).write(to: URL(filePath: path))
                let tool = try ClusterProcess(
                    ClusterProcess.Command(
                        executable: "/bin/sh", arguments: ["-c", "exec \"$0\" check metrics <\"$1\"", promtool, path],
                        environment: ["PATH": "/usr/bin:/bin"], logPath: path + ".output"))
                let end = await onOwnThread { tool.waitForEnd(within: .seconds(240)) }
                tool.kill9()
                #expect(end == .exited(status: 0) && tool.logTail().isEmpty, "\(part.name): \(tool.logTail())")
                #expect(response.body.count > 500, "\(part.name)")
                let port = try #require(URL(string: cluster.adminURL(part))?.port)
                let faults = await KeptConnections(port: port).faults(of: ["/metrics", "/health/ready"])
                #expect(faults == [], "\(part.name)")
            }
        }
    }

    /// The demo's people can onboard.
    @Test(.timeLimit(.minutes(20))) func theDemoLeavesPeopleWhoCanLogIn() async throws {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.ofTheDemo + [.onboarding]
        try await withCluster("demo-logins", options) { cluster in
            let demo = try cluster.startDemo(["--people", "1"])
            try await demo.expectNoDifferences()
            let output = demo.logTail(bytesMax: 20_000)
            let email = try #require(output.firstMatch(of: /can log in.*manager ([^\s,]+)/)).1
            let checked = try await cluster.runCommand(["environment", "check", "demo"])
            #expect(!checked.contains("FAILS"), "\(checked)")
            let client = Client()
            defer { client.shutDown() }
            let response = try await client.send(
                Request(
                    "POST", cluster.onboardingURL + "/register_device", headers: [("Content-Type", "application/json")],
                    body: Array(#"{"email":"\#(email)"}"#.utf8)))
            #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        }
    }
}
