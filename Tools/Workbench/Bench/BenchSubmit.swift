import ArgumentParser
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Back-end calls per second of one worker, compared with calls in flight / mean latency.
struct BenchSubmit: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "submit",
        abstract: "Compare entry-submitter's calls/s with in flight / latency.",
        discussion: """
            All calls count, including reads after writes. The rate is that between 10 % and 90 % of a run's calls; \
            the mean latency is that of these calls.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Entries per run; half of them if some calls are slow.") var entries = 10_000

    func validate() throws { try BenchOptions.check(entries, in: 1...1_000_000, "--entries") }

    static let targets = [
        BenchTarget(
            name: "20 ms: of in flight / latency", figure: "20 ms, calls", reference: "20 ms, limit",
            limit: .atLeast(0.9)),
        BenchTarget(name: "20 ms: of the HTTP client alone", figure: "20 ms, calls", reference: "HTTP client alone"),
        BenchTarget(
            name: "1 % slow: of in flight / latency", figure: "1 % slow, calls", reference: "1 % slow, limit",
            limit: .atLeast(0.95)),
    ]

    private static let inFlightMax = 64
    private static let latencyMilliseconds = 20.0
    private static let slowMilliseconds = 2_000.0
    private static let peopleCount = 6
    private static let clientTime = Duration.seconds(3)
    private static let roundMax = Duration.seconds(300)

    private var organisation: Organisation { GeneratedOrganisation.make(people: Self.peopleCount) }

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(
            services: LocalCluster.Part.entryServices,
            variables: [
                .submitter: [
                    "FIELDPOST_WORKER_COUNT": "1", "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "\(Self.inFlightMax)",
                ]
            ], organisation: organisation)
    }

    func setUp(_ installation: BenchInstallation) async throws -> BenchEntries {
        try await BenchEntries(installation, organisation)
    }

    func measure(
        _ source: BenchEntries, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        report.add("HTTP client alone", "calls/s", try await callAlone(on: installation))
        for (name, slow, count) in [("20 ms", 0.0, entries), ("1 % slow", 0.01, entries / 2)] {
            let measured = try await submit(count, slow: slow, source, on: installation)
            report.add("\(name), calls", "calls/s", measured.rate)
            report.add("\(name), limit", "calls/s", Double(Self.inFlightMax) / measured.latency)
            report.add("\(name), mean latency", "ms", measured.latency * 1_000)
            for (part, seconds) in measured.processorTimes {
                report.add("\(name), processor time of \(part)", "µs/call", seconds * 1_000_000)
            }
        }
    }

    /// The limit of the machine and the emulator: reads with the same number in flight.
    private func callAlone(on installation: BenchInstallation) async throws -> Double {
        try await setLatency(slow: 0, on: installation)
        let credentials = Data("\(SandboxSAP.user):\(LocalCluster.passwordOfSAP)".utf8).base64EncodedString()
        let request = Request(
            installation.cluster.sapURL + "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET/",
            headers: [("Authorization", "Basic \(credentials)")])
        let start = ContinuousClock.now
        let calls = try await concurrentMap(Array(0..<Self.inFlightMax)) { _ in
            var count = 0
            while ContinuousClock.now - start < Self.clientTime {
                let response = try await installation.client.send(request)
                guard response.status == 200 else { throw ClusterFailure("the back end returns \(response.status)") }
                count += 1
            }
            return count
        }
        return Double(calls.reduce(0, +)) / (ContinuousClock.now - start).inSeconds
    }

    private func setLatency(slow: Double, on installation: BenchInstallation) async throws {
        try await installation.sap.setSwitches(
            """
            {"latencyMs":\(Int(Self.latencyMilliseconds)),"rateSlow":\(slow),"slowMs":\(Int(Self.slowMilliseconds))}
            """)
    }

    /// The back end's counters at a time.
    private typealias Sample = (time: ContinuousClock.Instant, calls: Int, slow: Int)

    /// Writes entries while the submitter is stopped, starts it, and samples the back end's counters.
    ///
    /// - Returns: Also the parts' processor times, in seconds per call, from the start of the submitter until all
    ///   entries are settled.
    private func submit(
        _ count: Int, slow: Double, _ source: BenchEntries, on installation: BenchInstallation
    ) async throws -> (rate: Double, latency: Double, processorTimes: [(String, Double)]) {
        try await installation.stop(.submitter)
        let settledBefore = try await settledCount(on: installation)
        try await write(count, source, on: installation)
        try await setLatency(slow: slow, on: installation)
        let parts: [LocalCluster.Part] = [.sap, .database, .relay, .broker]
        let before = parts.map(installation.processorTime)
        try installation.cluster.start(.submitter)
        var samples = [try await sample(on: installation)]
        try await waitUntil("all entries are settled", within: Self.roundMax, interval: .zero) {
            for _ in 0..<10 {
                try await Task.sleep(for: .milliseconds(50))
                samples.append(try await sample(on: installation))
            }
            return try await settledCount(on: installation) >= settledBefore + count
        }
        let (rate, latency) = try Self.steadyState(samples)
        let calls = Double((samples.last?.calls ?? 0) - samples[0].calls)
        let processorTimes = zip([LocalCluster.Part.submitter] + parts, [0] + before).map { part, before in
            (part.name, (installation.processorTime(of: part) - before) / calls)
        }
        return (rate, latency, processorTimes)
    }

    /// The rate and the mean latency, in seconds, between 10 % and 90 % of the calls.
    private static func steadyState(_ samples: [Sample]) throws -> (rate: Double, latency: Double) {
        guard let first = samples.first, let last = samples.last, last.calls > first.calls else {
            throw ClusterFailure("the back end was not called")
        }
        let all = last.calls - first.calls
        guard let start = samples.first(where: { ($0.calls - first.calls) * 10 >= all }),
            let end = samples.first(where: { ($0.calls - first.calls) * 10 >= all * 9 }), end.calls > start.calls
        else { throw ClusterFailure("\(all) calls are too few to measure") }
        let (calls, slow) = (Double(end.calls - start.calls), Double(end.slow - start.slow))
        let latency = ((calls - slow) * latencyMilliseconds + slow * slowMilliseconds) / calls
        return (calls / (end.time - start.time).inSeconds, latency / 1_000)
    }

    private func sample(on installation: BenchInstallation) async throws -> Sample {
        let response = try await installation.client.send(Request(installation.cluster.sapURL + "/sandbox/stats"))
        let counts = try JSONDecoder().decode([String: Int].self, from: Data(response.body))
        let calls = counts.filter {
            ["reads", "creates", "updates", "deletes", "tokenFetches"].contains($0.key) || $0.key.hasSuffix("istings")
        }
        return (.now, calls.values.reduce(0, +), counts["slow"] ?? 0)
    }

    private func settledCount(on installation: BenchInstallation) async throws -> Int {
        try await installation.pool.number("SELECT count(*) FROM submission.ledger WHERE phase = 'settled'")
    }

    /// Writes entries as edits of devices, and waits until the relay has published them.
    private func write(_ count: Int, _ source: BenchEntries, on installation: BenchInstallation) async throws {
        let (environment, people) = (installation.environment, installation.people)
        try await installation.pool.run { connection in
            let paths = try people.map { try RealmPath.user($0.email) }
            var directory = RealmDirectory()
            let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
            for start in stride(from: 0, to: count, by: 1_000) {
                var batch = WriteBatch(environment: environment)
                for number in start..<min(start + 1_000, count) {
                    let entry = try source.make(number)
                    let key = ObjectKey(realm: realms[paths[entry.person]] ?? 0, kind: .timeEntry, id: UUID())
                    batch.put(key, try CanonicalJSON(entry.fields), decision: number - start, isEdit: true)
                }
                _ = try batch.commit(on: &connection)
            }
        }
        try await installation.waitUntilRelayed(within: Self.roundMax)
    }
}
