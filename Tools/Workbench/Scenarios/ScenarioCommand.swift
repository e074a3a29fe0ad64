import ArgumentParser
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Postgres

/// A scenario: it runs people's devices against services, injects faults, and compares the result with a model that is
/// independent of the services. The exit status is 1 if they differ.
protocol ScenarioCommand: AsyncParsableCommand {
    var output: ScenarioOptions { get }
    func report() async throws -> ScenarioReport
}

struct ScenarioOptions: ParsableArguments {
    @Option(help: "File for the report as JSON.") var json: String?
}

extension ScenarioCommand {
    func run() async throws {
        let report = try await report()
        print(report.text)
        if let json = output.json {
            try JSONEncoder.report.encode(report).write(to: URL(fileURLWithPath: json))
        }
        if !report.differences.isEmpty { throw ExitCode(1) }
    }
}

/// A cluster of its own for a scenario, with clients for the scenario's devices.
struct ScenarioStage: Sendable {
    let cluster: LocalCluster
    let client: Client
    let pool: Pool
    let console: ScenarioConsole

    var gateway: GatewayClient { GatewayClient(client: client, url: cluster.gatewayURL) }
    var identity: IdentitySandbox { IdentitySandbox(client: client, url: cluster.identityURL) }
    var sap: SandboxSAP { SandboxSAP(client: client, url: cluster.sapURL) }
    var economic: SandboxEconomic { SandboxEconomic(client: client, url: cluster.economicURL) }

    /// The set-up of an environment of the cluster.
    ///
    /// - Parameter backend: `nil`: an environment without a back end.
    func setup(_ environment: String, backend: (any DemoBackend)? = nil) -> DemoSetup {
        DemoSetup(pool: pool, environmentName: environment, identity: identity, backend: backend)
    }

    /// Runs `body` on a new cluster, which is stopped afterwards.
    ///
    /// - Parameter devices: The number of devices. Each has an open stream, and at times a request.
    static func with<Success>(
        _ name: String, _ options: LocalCluster.Options, devices: Int = 30, limits: Limits = Limits(),
        _ body: (ScenarioStage) async throws -> Success
    ) async throws -> Success {
        try await LocalCluster.run(name, options) { cluster in
            var configuration = Client.Configuration()
            configuration.connectionsPerHostMax = max(100, devices * 3)
            let client = Client(configuration: configuration)
            defer { client.shutDown() }
            let pool = try Pool(cluster.conninfo, size: 4, limits: limits)
            defer { pool.stop() }
            return try await body(
                ScenarioStage(cluster: cluster, client: client, pool: pool, console: ScenarioConsole()))
        }
    }

    /// Runs a scenario on a new cluster. If nothing differs afterwards, `fieldpost check` must not report differences;
    /// otherwise diagnostics are printed.
    ///
    /// - Parameters:
    ///   - devices: The number of devices.
    ///   - unchecked: The parts of `fieldpost check` in which differences are expected.
    static func run(
        _ name: String, _ options: LocalCluster.Options, devices: Int = 30, limits: Limits = Limits(),
        unchecked: Set<String> = [], _ body: (ScenarioStage) async throws -> ScenarioReport
    ) async throws -> ScenarioReport {
        try await with(name, options, devices: devices, limits: limits) { stage in
            var report = try await body(stage)
            if report.differences.isEmpty {
                report.differences = try await stage.cluster.differences().filter { !unchecked.contains($0.part) }
                    .map { "fieldpost check: \($0)" }
            }
            if !report.differences.isEmpty { await stage.cluster.printDiagnostics() }
            return report
        }
    }

    /// The lines of a service's metrics; `nil` while the service is unavailable.
    func metrics(of part: LocalCluster.Part) async -> [Substring]? {
        let request = Request(cluster.adminURL(part) + "/metrics", connectMax: .seconds(2), totalMax: .seconds(2))
        guard let response = try? await client.send(request), response.status == 200 else { return nil }
        return String(decoding: response.body, as: UTF8.self).split(separator: "\n")
    }

    /// Starts `workbench demo`, and returns when its devices are writing entries, or when it has ended. The back end
    /// is then polled every 5 s.
    func startDemo(_ options: [String], environment: String) async throws -> ClusterProcess {
        let demo = try cluster.startDemo(
            options + ["--environment", environment], log: environment, hasCompass: true)
        do {
            try await waitUntil("the entries of \(environment) are being written", within: .seconds(900)) {
                !demo.isRunning || demo.logTail(bytesMax: 500).contains("entries in flight")
            }
            try await poll(environment, every: 5)
        } catch {
            demo.kill9()
            throw error
        }
        return demo
    }

    /// Sets the interval at which the back end of an environment is polled.
    func poll(_ environment: String, every seconds: Int) async throws {
        try await cluster.runCommand(["environment", "edit", environment, "--poll-interval", "\(seconds)"])
    }

    /// Returns the output of a demo that has ended with differences, or failed; otherwise `nil`.
    static func failure(of demo: ClusterProcess) -> String? {
        let output = demo.logTail(bytesMax: 20_000)
        return demo.end == .exited(status: 0) && output.contains("verdict: no differences") ? nil : output
    }
}

extension [Substring] {
    /// The values of a metric with labels.
    func values(of metric: String) -> [Double] {
        filter { $0.hasPrefix(metric + "{") }.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
    }
}

/// Retries while a component is unavailable.
///
/// - Throws: The last error after `deadline`, and every error that a retry cannot resolve.
func retrying<Success: Sendable>(
    until deadline: ContinuousClock.Instant, _ body: () async throws -> Success
) async throws -> Success {
    var backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))
    while true {
        do { return try await body() } catch {
            guard isTransient(error), ContinuousClock.now < deadline else { throw error }
            try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
        }
    }
}

/// Runs `body` for every element, at most `parallelMax` at a time.
///
/// - Returns: The results, in the order of the elements.
/// - Throws: The first error; the other calls are cancelled then.
@discardableResult
func concurrentMap<Element: Sendable, Success: Sendable>(
    _ elements: [Element], parallelMax: Int = .max, _ body: @escaping @Sendable (Element) async throws -> Success
) async throws -> [Success] {
    try await withThrowingTaskGroup(of: (index: Int, success: Success).self) { group in
        var results: [(index: Int, success: Success)] = []
        for (index, element) in elements.enumerated() {
            if index >= parallelMax, let result = try await group.next() { results.append(result) }
            group.addTask { (index, try await body(element)) }
        }
        for try await result in group { results.append(result) }
        return results.sorted { $0.index < $1.index }.map(\.success)
    }
}

/// Whether a retry can succeed: PostgreSQL or a service is unavailable, or a token has expired.
private func isTransient(_ error: any Error) -> Bool {
    if let error = error as? PostgresError { return error.isRetriable }
    if let refusal = error as? GatewayClient.UnexpectedResponse {
        return refusal.status == 401 || refusal.status >= 429
    }
    return error is HTTPError
}
