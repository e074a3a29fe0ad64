import ArgumentParser
import FoundationEssentials

/// A benchmark of one component: ``setUp(_:)`` once, then ``measure(_:on:_:)`` once per run.
protocol BenchScenario: AsyncParsableCommand {
    /// The data of all runs.
    associatedtype Fixture

    static var targets: [BenchTarget] { get }
    var options: BenchOptions { get }
    var installation: BenchInstallation.Configuration { get }

    /// Writes the data.
    func setUp(_ installation: BenchInstallation) async throws -> Fixture
    /// Measures the reference and the component once.
    func measure(
        _ fixture: Fixture, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws
}

extension BenchScenario {
    func run() async throws {
        let report = try await report()
        print(report.text)
        if let json = options.json { try report.json.write(to: URL(filePath: json)) }
    }

    /// Starts a cluster and measures all runs.
    func report() async throws -> BenchReport {
        var configuration = installation
        configuration.brokerRoundTrip = options.brokerRoundTrip
        return try await BenchInstallation.with(configuration) { try await measureRuns(on: $0) }
    }

    private func measureRuns(on installation: BenchInstallation) async throws -> BenchReport {
        let name = Self.configuration.commandName ?? ""
        let fixture = try await setUp(installation)
        print("warm-up")
        var warmUp = BenchReport(name: name, targets: Self.targets)
        try await measure(fixture, on: installation, &warmUp)
        var report = BenchReport(name: name, targets: Self.targets)
        for run in 1...options.runs {
            print("run \(run) of \(options.runs)")
            let pressure = SystemPressure.now()
            try await measure(fixture, on: installation, &report)
            pressure.add(to: &report)
            print("  \(report.latestValues)")
        }
        return report
    }
}
