import FoundationEssentials
import HTTPClient
import LocalCluster

/// The addresses of the components that the demo needs. They are checked once before the demo begins; afterwards the
/// demo waits for unavailable components.
enum DemoAddresses {
    /// A component, with a path and the expected status of its response.
    private typealias Component = (name: String, url: String, path: String, status: Int, option: String)

    /// The time limit of a check, with retries.
    private static let responseMax = Duration.seconds(8)

    /// Returns the given address, otherwise that of the environment variable, otherwise the default, without a slash at
    /// the end.
    static func url(_ given: String?, _ variable: String, default port: Int) -> String {
        let inherited = ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
        return url(given ?? inherited ?? "http://127.0.0.1:\(port)")
    }

    /// Removes a slash at the end.
    static func url(_ given: String) -> String { given.hasSuffix("/") ? String(given.dropLast()) : given }

    /// - Throws: ``DemoFailure`` with each component that does not respond.
    static func check(
        _ client: Client, gateway: String, identity: String, backend: any DemoBackend, compass: SandboxCompass?
    ) async throws {
        let sort = type(of: backend)
        let option = sort.kind == SandboxSAP.kind ? "--sap (SAP_URL)" : "--\(sort.kind)"
        var components: [Component] = [
            ("the realm-gateway", gateway, "/v1/realms", 401, "--gateway (GATEWAY_URL)"),
            (
                "the sandbox's identity provider", identity, "/.well-known/openid-configuration", 200,
                "--identity (IDENTITY_URL)"
            ),
            ("the sandbox of \(sort.name)", backend.url, "/sandbox/stats", 200, option),
        ]
        if let compass {
            components.append(
                ("the sandbox of \(SandboxCompass.name)", compass.url, "/sandbox/stats", 200, "--compass"))
        }
        let objections = try await concurrentMap(components) { await objection(to: $0, client) }.compactMap(\.self)
        guard objections.isEmpty else {
            throw DemoFailure(
                objections.sorted().joined(separator: "; ")
                    + ". Does the cluster run (deploy/up), and is its environment sourced?")
        }
    }

    private static func objection(to component: Component, _ client: Client) async -> String? {
        let request = Request(
            component.url + component.path, connectMax: responseMax, totalMax: responseMax, responseBytesMax: 1 << 20)
        var last = ""
        do {
            try await waitUntil("\(component.name) responds", within: responseMax, interval: .milliseconds(200)) {
                let status = try? await client.send(request).status
                last = status.map { "answers \($0) to \(component.path)" } ?? "does not answer"
                return status == component.status
            }
            return nil
        } catch {
            return "\(component.name) at \(component.url) \(last); set its address with \(component.option)"
        }
    }
}
