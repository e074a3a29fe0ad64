import Algorithms
import ArgumentParser
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Calls to the back end per second, against what so many calls in flight allow.
struct BenchSubmit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit",
        abstract: "Back-end calls per second by one worker, against calls in flight / mean latency.",
        discussion: """
            All calls count, reading back included. Measured between 10 % and 90 % of a round's calls; the mean \
            latency is that of these calls.

            On a bad day (20 ms, 5 % 503, 2 % 429 with Retry-After 1 s, 2 % lost answers) the time until all entries \
            are in is compared with that of a model which uses every place at once, keeps every Retry-After, and lets \
            every unknown outcome settle; then the faults end.
            """)

    @OptionGroup var options: BenchClusterOptions

    @Option(help: "Entries to submit in a round; half of them where some calls are slow.")
    var entries = 10_000

    @Option(help: "Milliseconds that the broker takes longer to answer, as if it were on another machine.")
    var brokerRoundTrip = 0

    @Flag(inversion: .prefixedNo, help: "Whether bad days are measured too.")
    var badDays = true

    static let inFlight = 64
    private static let latencyMilliseconds = 20.0
    private static let slowMilliseconds = 2_000.0
    static let peopleCount = 6
    private static let aloneFor = Duration.seconds(3)
    private static let roundMax = Duration.seconds(300)

    func run() async throws {
        var figures = BenchFigures()
        let organisation = GeneratedOrganisation.make(people: Self.peopleCount)
        let variables = [
            "FIELDPOST_WORKER_COUNT": "1", "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "\(Self.inFlight)",
        ]
        try await BenchCluster.with(
            variables: [.submitter: variables], arguments: brokerArguments, people: organisation.people
        ) { bench in
            try await bench.fillRealms(of: organisation)
            let source = try await BenchEntries(bench, organisation)
            for round in 1...options.rounds {
                print("round \(round) of \(options.rounds)")
                figures.add("fixed, HTTP client alone", "calls/s", try await callAlone(bench))
                for (name, slow, count) in [("fixed", 0.0, entries), ("1 % slow", 0.01, entries / 2)] {
                    let measured = try await measure(count, slow: slow, source, bench)
                    let limit = Double(Self.inFlight) / measured.latency.inSeconds
                    figures.add("\(name), calls", "calls/s", measured.rate)
                    figures.add("\(name), in flight / mean latency", "calls/s", limit)
                    figures.add("\(name), mean latency", "ms", measured.latency.inSeconds * 1_000)
                    figures.add("\(name), measured for", "s", measured.time.inSeconds)
                    for (part, seconds) in measured.processorTimes {
                        figures.add("\(name), processor time of \(part)", "µs/call", seconds * 1_000_000)
                    }
                    figures.add("\(name), share of the limit", "", measured.rate / limit)
                }
            }
        }
        if badDays { try await measureBadDays(&figures) }
        print(figures.table(title: "submit, medians of \(options.rounds) rounds, on \(BenchCluster.place)"))
        print(BenchFigures.ratio("20 ms", figures.median("fixed, share of the limit"), aim: 0.9))
        let alone = figures.median("fixed, calls") / figures.median("fixed, HTTP client alone")
        print("  20 ms, against the HTTP client alone: \(BenchFigures.text(alone))")
        print(BenchFigures.ratio("1 % at 2 s", figures.median("1 % slow, share of the limit"), aim: 0.95))
        guard badDays else { return }
        print(
            BenchFigures.ratio("bad day, 90 % of the entries", figures.median("bad day, share of the model"), aim: 0.7))
        print(
            BenchFigures.ratio(
                "bad day, the last entry", figures.median("bad day, last entry / the model's"), aim: 2, isAtMost: true))
        print(
            BenchFigures.ratio(
                "normal speed back after", figures.median("bad day, normal speed after"), aim: 10, isAtMost: true))
    }

    var brokerArguments: [LocalCluster.Part: [String]] { [.broker: ["--round-trip", "\(brokerRoundTrip)"]] }

    /// What the machine and the sandbox let through: as many reads in flight, with nothing around them.
    private func callAlone(_ bench: BenchCluster) async throws -> Double {
        try await setLatency(slow: 0, bench)
        let credentials = Data("\(SandboxSAP.user):\(LocalCluster.passwordOfSAP)".utf8).base64EncodedString()
        let request = Request(
            bench.cluster.sapURL + "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET/",
            headers: [("Authorization", "Basic \(credentials)")])
        let start = ContinuousClock.now
        let calls = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<Self.inFlight {
                group.addTask {
                    var count = 0
                    while ContinuousClock.now - start < Self.aloneFor {
                        let response = try await bench.client.send(request)
                        guard response.status == 200 else {
                            throw BenchPlace.Missing(description: "the back end answers \(response.status)")
                        }
                        count += 1
                    }
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
        return Double(calls) / (ContinuousClock.now - start).inSeconds
    }

    func setLatency(slow: Double, _ bench: BenchCluster) async throws {
        _ = try await bench.sap.setSwitches(
            """
            {"latencyMs":\(Int(Self.latencyMilliseconds)),"rateSlow":\(slow),"slowMs":\(Int(Self.slowMilliseconds))}
            """)
    }

    struct Measured {
        let rate: Double
        let latency: Duration
        let time: Duration
        /// In seconds per call, from the start of the submitter until all is settled.
        var processorTimes: [(part: String, seconds: Double)] = []
    }

    struct Sample {
        let time: ContinuousClock.Instant
        let calls: Int
        let slow: Int
    }

    /// Has the submitter find its entries ready when it starts, and watches the back end's counts.
    ///
    /// - Parameter sampled: The share of the entries that belong to a trace that is recorded.
    func measure(
        _ count: Int, slow: Double, _ source: BenchEntries, _ bench: BenchCluster, sampled: Double = 0
    ) async throws -> Measured {
        guard await bench.cluster.terminate(.submitter, within: .seconds(30)) != nil else {
            throw BenchPlace.Missing(description: "the submitter does not stop")
        }
        let settledBefore = try await settledCount(bench)
        try await write(count, source, bench, sampled: sampled)
        try await setLatency(slow: slow, bench)
        let parts: [LocalCluster.Part] = [.sap, .database, .relay, .broker]
        let before = parts.map(bench.processorTime)
        try bench.cluster.start(.submitter)
        var samples = [try await sample(bench)]
        let deadline = ContinuousClock.now + Self.roundMax
        var isSettled = false
        while !isSettled {
            for _ in 0..<10 {
                try await Task.sleep(for: .milliseconds(50))
                samples.append(try await sample(bench))
            }
            isSettled = try await settledCount(bench) >= settledBefore + count
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "the entries were not submitted within \(Self.roundMax)")
            }
        }
        var measured = try Self.steady(samples)
        let calls = Double((samples.last?.calls ?? 0) - samples[0].calls)
        measured.processorTimes = zip([LocalCluster.Part.submitter] + parts, [0] + before).map { part, before in
            (part.name, (bench.processorTime(of: part) - before) / calls)
        }
        return measured
    }

    /// What happened between 10 % and 90 % of the calls.
    private static func steady(_ samples: [Sample]) throws -> Measured {
        guard let first = samples.first, let last = samples.last, last.calls > first.calls else {
            throw BenchPlace.Missing(description: "the back end was not called")
        }
        let all = last.calls - first.calls
        guard let start = samples.first(where: { ($0.calls - first.calls) * 10 >= all }),
            let end = samples.first(where: { ($0.calls - first.calls) * 10 >= all * 9 }), end.calls > start.calls
        else { throw BenchPlace.Missing(description: "too few calls to measure") }
        let (calls, slow) = (Double(end.calls - start.calls), Double(end.slow - start.slow))
        let latency = ((calls - slow) * latencyMilliseconds + slow * slowMilliseconds) / calls
        return Measured(
            rate: calls / (end.time - start.time).inSeconds, latency: .seconds(latency / 1_000),
            time: end.time - start.time)
    }

    func sample(_ bench: BenchCluster) async throws -> Sample {
        let response = try await bench.client.send(Request(bench.cluster.sapURL + "/sandbox/stats"))
        let counts = try JSONDecoder().decode([String: Int].self, from: Data(response.body))
        let calls = counts.filter {
            ["reads", "creates", "updates", "deletes", "tokenFetches"].contains($0.key) || $0.key.hasSuffix("istings")
        }
        return Sample(time: .now, calls: calls.values.reduce(0, +), slow: counts["slow"] ?? 0)
    }

    private func settledCount(_ bench: BenchCluster) async throws -> Int {
        try await bench.pool.run { connection in
            let rows = try connection.run("SELECT count(*) FROM submission.ledger WHERE phase = 'settled'")
            return Int(try rows[0].decode(Int64.self))
        }
    }

    /// Writes the entries as devices' edits, and waits until the relay has published them.
    func write(
        _ count: Int, _ source: BenchEntries, _ bench: BenchCluster, sampled: Double = 0
    ) async throws {
        let (environment, people) = (bench.environment, bench.people)
        try await bench.pool.run { connection in
            let paths = try people.map { try RealmPath.user($0.email) }
            var directory = RealmDirectory()
            let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
            for numbers in (0..<count).chunks(ofCount: 1_000) {
                var batch = WriteBatch(environment: environment)
                for (decision, number) in numbers.enumerated() {
                    let entry = try source.make(number)
                    if Double.random(in: 0..<1) < sampled { batch.trace(.sampled(), decision: decision) }
                    let key = ObjectKey(realm: realms[paths[entry.person]] ?? 0, kind: .timeEntry, id: UUID())
                    batch.put(key, try CanonicalJSON(entry.fields), decision: decision, isEdit: true)
                }
                _ = try batch.commit(on: &connection)
            }
        }
        try await bench.waitUntilRelayed(within: Self.roundMax)
    }
}

extension TraceContext {
    /// A new trace that is recorded.
    static func sampled() -> TraceContext? {
        TraceContext(
            traceHigh: .random(in: 1...UInt64.max), traceLow: .random(in: 1...UInt64.max),
            spanID: .random(in: 1...UInt64.max), flags: 1)
    }
}
