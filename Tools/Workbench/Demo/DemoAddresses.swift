import FoundationEssentials
import HTTPClient
import Postgres

/// Where the demo's parts are, asked once before it begins: once it runs, whatever is away is waited for.
struct DemoAddresses: Sendable {
    private struct Part {
        let name: String
        let url: String
        /// What it answers when it is what it should be.
        let path: String
        let status: Int
        let option: String
    }

    /// How long a part may take to answer, in which it is asked again.
    private static let answerMax = Duration.seconds(8)

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

    /// An address that was given, else that of the environment's variable, else the default, without a slash at its
    /// end.
    static func url(_ given: String?, _ variable: String, default port: Int) -> String {
        let inherited = ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
        return url(given ?? inherited ?? "http://127.0.0.1:\(port)")
    }

    /// Without a slash at its end.
    static func url(_ given: String) -> String { given.hasSuffix("/") ? String(given.dropLast()) : given }

    /// - Throws: ``DemoProblem`` that names each part that does not answer.
    func check() async throws {
        let objections = await withTaskGroup(of: (Int, String?).self) { group in
            for (index, part) in parts.enumerated() { group.addTask { (index, await objection(to: part)) } }
            var found: [(Int, String?)] = []
            for await answer in group { found.append(answer) }
            return found.sorted { $0.0 < $1.0 }.compactMap(\.1)
        }
        guard objections.isEmpty else {
            throw DemoProblem(
                objections.joined(separator: "; ")
                    + ". Does the cluster run (deploy/up), and is its environment sourced?")
        }
    }

    private func objection(to part: Part) async -> String? {
        let end = ContinuousClock.now + Self.answerMax
        var last = ""
        repeat {
            do {
                let left = max(end - ContinuousClock.now, .milliseconds(100))
                let answer = try await client.send(
                    Request(part.url + part.path, connectMax: left, totalMax: left, answerBytesMax: 1 << 20))
                if answer.status == part.status { return nil }
                last = "answers \(answer.status) to \(part.path)"
            } catch {
                last = "does not answer"
            }
            try? await Task.sleep(for: .milliseconds(200))
        } while ContinuousClock.now < end && !Task.isCancelled
        return "\(part.name) at \(part.url) \(last); \(part.option) says where it is"
    }
}

extension DemoBackend {
    /// How a person says where it is.
    fileprivate static var addressOption: String { kind == "sap" ? "--sap (SAP_URL)" : "--\(kind)" }
}
