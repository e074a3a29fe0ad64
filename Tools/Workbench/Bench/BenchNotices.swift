import ArgumentParser
import Essentials
import HTTPClient
import LocalCluster
import Model

/// Notices per second of `notice-deliverer` through APNs and FCM, compared with the HTTP client alone.
struct BenchNotices: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "notices",
        abstract: "Compare notice-deliverer with the HTTP client alone.",
        discussion: """
            Each person has one device, at an emulator of APNs or of FCM. The notices are written and published before \
            the service starts; the time begins with the first delivery, which does not count. deploy/test installs \
            the emulators.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of notices in each run.") var notices = 10_000

    @Option(help: "Number of people with a device.") var people = 500

    func validate() throws {
        try BenchOptions.check(notices, in: 2...1_000_000, "--notices")
        try BenchOptions.check(people, in: 2...100_000, "--people")
    }

    static let targets = [
        BenchTarget(
            name: "of the HTTP client alone", figure: "notices", reference: "HTTP client alone", limit: .atLeast(0.5)),
        BenchTarget(name: "memory", figure: "memory", statistic: .maximum, limit: .atMost(64)),
    ]

    private static let inFlightMax = 64
    private static let clientTime = Duration.seconds(3)
    private static let timeMax = Duration.seconds(600)

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration(services: [.relay]) }

    func setUp(_ installation: BenchInstallation) async throws -> BenchDevices {
        try await BenchDevices(installation, people: people)
    }

    func measure(
        _ devices: BenchDevices, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        report.add("HTTP client alone", "requests/s", try await callAlone(devices))
        try devices.notify(notices)
        try await installation.waitUntilRelayed(within: Self.timeMax)
        let result = try await deliver(devices, on: installation)
        report.add("notices", "notices/s", result.perSecond)
        report.add("processor time", "µs/notice", result.processorTime)
        report.add("memory", "MB", result.memory)
    }

    /// The limit of the machine and the emulator of APNs.
    private func callAlone(_ devices: BenchDevices) async throws -> Double {
        var configuration = Client.Configuration()
        configuration.caFile = devices.services.certificateFile
        let (client, request) = (Client(configuration: configuration), try devices.appleRequest())
        let start = ContinuousClock.now
        let calls = try await concurrentMap(Array(0..<Self.inFlightMax)) { _ in
            var count = 0
            while ContinuousClock.now - start < Self.clientTime {
                let response = try await client.send(request)
                guard response.status == 200 else { throw ClusterFailure("the emulator returns \(response.status)") }
                count += 1
            }
            return count
        }
        return Double(calls.reduce(0, +)) / (ContinuousClock.now - start).inSeconds
    }

    /// Processor time is in microseconds per notice, memory in MB.
    private func deliver(
        _ devices: BenchDevices, on installation: BenchInstallation
    ) async throws -> (perSecond: Double, processorTime: Double, memory: Double) {
        let before = try devices.sentCount()
        let worker = try installation.start(
            Services.noticeDeliverer, variables: ["FIELDPOST_DELIVERER_CA_FILE": devices.services.certificateFile])
        // A service that is terminated commits its offsets.
        defer { if worker.terminate(within: .seconds(20)) == nil { worker.kill9() } }
        func sample(_ count: Int) async throws -> (time: ContinuousClock.Instant, count: Int, own: Double) {
            var found = 0
            try await waitUntil("\(count) deliveries", within: Self.timeMax, interval: .milliseconds(100)) {
                guard worker.isRunning else { throw ClusterFailure(worker.logTail()) }
                found = try devices.sentCount()
                return found >= count
            }
            return (.now, found, ProcessUsage.processorTime(of: worker.id))
        }
        let first = try await sample(before + 1)
        let last = try await sample(before + notices)
        let count = Double(last.count - first.count)
        return (
            count / (last.time - first.time).inSeconds, (last.own - first.own) / count * 1e6,
            (ProcessUsage.value("VmHWM", of: worker.id) ?? .nan) / 1_024
        )
    }
}
