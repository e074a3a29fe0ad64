import FoundationEssentials
import HTTPClient
import LocalCluster

/// The addresses of the components that the demo needs. They are checked once before the demo begins; afterwards the
/// demo waits for unavailable components.
enum DemoAddresses {
    private struct Component {
        let name: String
        let url: String
        /// A path and the expected status of its response.
        let path: String
        let status: Int
        let option: String
    }

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
        var components = [
            Component(
                name: "the realm-gateway", url: gateway, path: "/v1/realms", status: 401,
                option: "--gateway (GATEWAY_URL)"),
            Component(
                name: "the sandbox's identity provider", url: identity, path: "/.well-known/openid-configuration",
                status: 200, option: "--identity (IDENTITY_URL)"),
            Component(
                name: "the sandbox of \(sort.name)", url: backend.url, path: "/sandbox/stats", status: 200,
                option: sort.kind == SandboxSAP.kind ? "--sap (SAP_URL)" : "--\(sort.kind)"),
        ]
        if let compass {
            components.append(
                Component(
                    name: "the sandbox of \(SandboxCompass.name)", url: compass.url, path: "/sandbox/stats",
                    status: 200, option: "--compass"))
        }
        let objections = await withTaskGroup(of: String?.self) { group in
            for component in components { group.addTask { await objection(to: component, client) } }
            var found: [String] = []
            for await objection in group {
                if let objection { found.append(objection) }
            }
            return found.sorted()
        }
        guard objections.isEmpty else {
            throw DemoFailure(
                objections.joined(separator: "; ")
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
