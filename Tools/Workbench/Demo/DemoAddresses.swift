import FoundationEssentials
import HTTPClient
import Postgres

/// The addresses of the components that the demo needs. They are checked once before the demo begins; afterwards the
/// demo waits for unavailable components.
struct DemoAddresses: Sendable {
    private struct Part {
        let name: String
        let url: String
        /// A path and the expected status of its response.
        let path: String
        let status: Int
        let option: String
    }

    /// The time limit of a check, with retries.
    private static let responseMax = Duration.seconds(8)

    private let client: Client
    private let parts: [Part]

    init(
        _ client: Client, gateway: String, identity: String, backend: any DemoBackend, compass: SandboxCompass?
    ) {
        self.client = client
        let sort = type(of: backend)
        parts =
            [
                Part(
                    name: "the realm-gateway", url: gateway, path: "/v1/realms", status: 401,
                    option: "--gateway (GATEWAY_URL)"),
                Part(
                    name: "the sandbox's identity provider", url: identity, path: "/.well-known/openid-configuration",
                    status: 200, option: "--identity (IDENTITY_URL)"),
                Part(
                    name: "the sandbox of \(sort.name)", url: backend.url, path: "/sandbox/stats", status: 200,
                    option: sort.addressOption),
            ]
            + (compass.map {
                [
                    Part(
                        name: "the sandbox of \(SandboxCompass.name)", url: $0.url, path: "/sandbox/stats", status: 200,
                        option: "--compass")
                ]
            } ?? [])
    }

    /// Returns the given address, otherwise that of the environment variable, otherwise the default, without a slash at
    /// the end.
    static func url(_ given: String?, _ variable: String, default port: Int) -> String {
        let inherited = ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
        return url(given ?? inherited ?? "http://127.0.0.1:\(port)")
    }

    /// Removes a slash at the end.
    static func url(_ given: String) -> String { given.hasSuffix("/") ? String(given.dropLast()) : given }

    /// - Throws: ``DemoFailure`` with each component that does not respond.
    func check() async throws {
        let objections = await withTaskGroup(of: (Int, String?).self) { group in
            for (index, part) in parts.enumerated() { group.addTask { (index, await objection(to: part)) } }
            var found: [(Int, String?)] = []
            for await answer in group { found.append(answer) }
            return found.sorted { $0.0 < $1.0 }.compactMap(\.1)
        }
        guard objections.isEmpty else {
            throw DemoFailure(
                objections.joined(separator: "; ")
                    + ". Does the cluster run (deploy/up), and is its environment sourced?")
        }
    }

    private func objection(to part: Part) async -> String? {
        let end = ContinuousClock.now + Self.responseMax
        var last = ""
        repeat {
            do {
                let left = max(end - ContinuousClock.now, .milliseconds(100))
                let answer = try await client.send(
                    Request(part.url + part.path, connectMax: left, totalMax: left, responseBytesMax: 1 << 20))
                if answer.status == part.status { return nil }
                last = "answers \(answer.status) to \(part.path)"
            } catch {
                last = "does not answer"
            }
            try? await Task.sleep(for: .milliseconds(200))
        } while ContinuousClock.now < end && !Task.isCancelled
        return "\(part.name) at \(part.url) \(last); set its address with \(part.option)"
    }
}

extension DemoBackend {
    /// The option that sets the address.
    fileprivate static var addressOption: String { kind == "sap" ? "--sap (SAP_URL)" : "--\(kind)" }
}
