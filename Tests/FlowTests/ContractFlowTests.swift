import Foundation
import HTTPClient
import LocalCluster
import Testing

extension FlowTests {
    /// Schemathesis makes requests of every sort from `deploy/openapi.yaml`, good and bad ones, and compares status,
    /// type, headers and shape of every response of a real gateway with it. `deploy/test` installs it.
    @Test(.timeLimit(.minutes(20))) func gatewayKeepsItsContract() async throws {
        try await withContract(.gateway) { cluster, client in
            let contractReply = try await client.send(
                Request(
                    "POST", cluster.identityURL + "/sandbox/token", headers: [("Content-Type", "application/json")],
                    body: Array(#"{"email":"ana@example.com"}"#.utf8)))
            let json = try JSONSerialization.jsonObject(with: Data(contractReply.body)) as? [String: Any]
            let authorization = "Bearer \(try #require(json?["access_token"] as? String))"
            try await eventually("the gateway has the environment") {
                let headers = [("Authorization", authorization)]
                let status = try await client.send(
                    Request("GET", cluster.gatewayURL + "/v1/realms", headers: headers)
                ).status
                return status == 200 ? nil : "\(status)"
            }
            let key = try await cluster.runCommand(["environment", "integration", "add", "contract"])
            for bearer in [authorization, "Bearer \(try #require(key.split(separator: "\n").last))"] {
                // What is wrong inside one mutation is part of a good response, and so no bad request.
                try await compare(
                    cluster, url: cluster.gatewayURL, paths: "^/v1/(realms|sync|mutations|blobs)",
                    ["--exclude-checks", "negative_data_rejection", "--header", "Authorization: \(bearer)"])
            }
        }
    }

    /// The same for onboarding.
    @Test(.timeLimit(.minutes(20))) func onboardingKeepsItsContract() async throws {
        try await withContract(.onboarding) { cluster, client in
            let response = try await client.send(
                Request(
                    "POST", cluster.onboardingURL + "/register_device", headers: [("Content-Type", "application/json")],
                    body: Array(#"{"email":"ana@example.com"}"#.utf8)))
            #expect(response.status == 200)
            // What is well formed may still be unknown: a session, a login, an address.
            try await compare(
                cluster, url: cluster.onboardingURL, paths: "^/(register_device|sessions|auth_|v1/token|v1/logout)",
                ["--exclude-checks", "negative_data_rejection,positive_data_acceptance"])
        }
    }

    /// Lends a cluster with one service and an environment without a back end.
    private func withContract(
        _ service: LocalCluster.Part, _ body: (LocalCluster, Client) async throws -> Void
    ) async throws {
        var options = LocalCluster.Options.quick
        options.services = [service]
        let bounds = ["ADDRESS", "CLIENT", "DOMAIN"].map { ("FIELDPOST_ONBOARDING_\($0)_MAX", "1000000") }
        options.variables[.onboarding] = Dictionary(uniqueKeysWithValues: bounds)
        let cluster = try await LocalCluster("contract", options)
        let client = Client()
        let outcome: Result<Void, any Error>
        do {
            try await cluster.runCommand([
                "environment", "add", "contract", "--domain", "example.com", "--issuer", cluster.identityURL,
                "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
                "--client-id", LocalCluster.clientID, "--client-secret-from", LocalCluster.clientSecretVariable,
            ])
            try await body(cluster, client)
            outcome = .success(try await expectConsistent(cluster))
        } catch {
            outcome = .failure(error)
        }
        client.shutDown()
        #expect(cluster.fallen.isEmpty, "\(cluster.fallen)")
        await cluster.stop()
        try outcome.get()
    }

    private func compare(_ cluster: LocalCluster, url: String, paths: String, _ more: [String]) async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let program = root.appendingPathComponent(".build/schemathesis/bin/schemathesis").path
        try #require(
            FileManager.default.isExecutableFile(atPath: program), "there is no \(program); deploy/test installs it")
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/bin/sh",
                arguments: [
                    // It keeps notes where it runs.
                    "-c", "cd \"$0\" && exec \"$@\"", cluster.folder.path, program, "run",
                    root.appendingPathComponent("deploy/openapi.yaml").path, "--url", url, "--include-path-regex",
                    paths, "--checks", "all", "--max-examples", "60",
                    "--request-timeout", "20", "--no-color",
                ] + more,
                environment: [
                    "PATH": "/usr/bin:/bin", "HOME": cluster.folder.path, "PYTHONDONTWRITEBYTECODE": "1",
                    "SCHEMATHESIS_HOOKS": root.appendingPathComponent("deploy/contract_hooks.py").path,
                ], logPath: "\(cluster.folder.path)/schemathesis-\(UUID()).log"))
        let end = await onOwnThread { process.waitForEnd(within: .seconds(480)) }
        process.kill9()
        #expect(end == .exited(status: 0), "\(process.logTail(bytesMax: 6_000))")
    }
}
