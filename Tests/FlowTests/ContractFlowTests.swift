import Foundation
import HTTP
import Suite
import Testing

extension FlowTests {
    /// Schemathesis makes requests of every sort from `deploy/openapi.yaml`, good and bad ones, and compares status,
    /// type, headers and shape of every answer of a real gateway with it. `deploy/test` installs it.
    @Test(.timeLimit(.minutes(5))) func theGatewayAnswersAsItsDocumentSays() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let program = root.appendingPathComponent(".build/schemathesis/bin/schemathesis").path
        try #require(
            FileManager.default.isExecutableFile(atPath: program), "there is no \(program); deploy/test installs it")
        var options = Suite.Options.quick
        options.services = [.gateway]
        let suite = try await Suite("contract", options)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await askEverything(suite, root, program)) } catch { outcome = .failure(error) }
        await suite.stop()
        try outcome.get()
    }

    private func askEverything(_ suite: Suite, _ root: URL, _ program: String) async throws {
        try await suite.runCommand([
            "environment", "add", "contract", "--domain", "example.com", "--issuer", suite.identityURL, "--audience",
            "fieldpost", "--jwks-url", suite.identityURL + "/jwks", "--backend", "none",
        ])
        let client = Client()
        defer { client.shutDown() }
        let asked = try await client.send(
            Request(
                "POST", suite.identityURL + "/sandbox/token", headers: [("Content-Type", "application/json")],
                body: Array(#"{"email":"ana@example.com"}"#.utf8)))
        let json = try JSONSerialization.jsonObject(with: Data(asked.body)) as? [String: Any]
        let authorization = "Bearer \(try #require(json?["access_token"] as? String))"
        try await eventually("the gateway knows the environment", within: .seconds(20)) {
            let request = Request("GET", suite.gatewayURL + "/v1/realms", headers: [("Authorization", authorization)])
            let status = try await client.send(request).status
            return status == 200 ? nil : "\(status)"
        }
        let key = try await suite.runCommand(["environment", "integration", "add", "contract"])
        let bearers = [authorization, "Bearer \(try #require(key.split(separator: "\n").last))"]
        for (number, bearer) in bearers.enumerated() {
            // What is wrong inside one mutation is part of a good answer, and so no bad request.
            let process = try SuiteProcess(
                SuiteProcess.Command(
                    executable: "/bin/sh",
                    arguments: [
                        // It keeps notes where it runs.
                        "-c", "cd \"$0\" && exec \"$@\"", suite.folder.path, program, "run",
                        root.appendingPathComponent("deploy/openapi.yaml").path, "--url", suite.gatewayURL,
                        "--include-path-regex", "^/v1/", "--header", "Authorization: \(bearer)", "--checks", "all",
                        "--exclude-checks", "negative_data_rejection", "--max-examples", "60", "--request-timeout",
                        "20", "--no-color",
                    ],
                    environment: [
                        "PATH": "/usr/bin:/bin", "HOME": suite.folder.path, "PYTHONDONTWRITEBYTECODE": "1",
                        "SCHEMATHESIS_HOOKS": root.appendingPathComponent("deploy/contract_hooks.py").path,
                    ], logPath: "\(suite.folder.path)/schemathesis-\(number).log"))
            let end = await onOwnThread { process.waitForEnd(within: .seconds(120)) }
            process.kill9()
            #expect(end == .exited(status: 0), "\(process.logTail(bytesMax: 6_000))")
        }
        #expect(suite.fallen.isEmpty, "\(suite.fallen)")
    }
}

/// Runs what blocks on a thread of its own.
private func onOwnThread<Success: Sendable>(_ body: @escaping @Sendable () -> Success) async -> Success {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}
