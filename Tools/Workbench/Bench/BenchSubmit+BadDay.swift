import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres

/// A back end with faults, against the best that can be done with it.
extension BenchSubmit {
    private static let settle = Duration.seconds(30)
    private static let faults =
        #"{"latencyMs":20,"rateSlow":0,"rate503":0.05,"rate429":0.02,"retryAfterSeconds":1,"rateLostAfterWrite":0.02"#
    private static let noFaults = #"{"latencyMs":20,"rate503":0,"rate429":0,"rateLostAfterWrite":0}"#
    private static let badDayMax = Duration.seconds(600)

    /// Each of the rounds begins with a cluster of its own: what waits of one would be in the next one's way.
    func measureBadDays(_ figures: inout BenchFigures) async throws {
        for round in 1...options.rounds {
            print("bad day \(round) of \(options.rounds)")
            let organisation = GeneratedOrganisation.make(people: Self.peopleCount)
            let variables = [
                "FIELDPOST_WORKER_COUNT": "1", "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "\(Self.inFlight)",
                "FIELDPOST_SUBMITTER_SETTLE_MIN": "\(Int(Self.settle.inSeconds))s",
            ]
            try await BenchCluster.with(
                variables: [.submitter: variables], arguments: brokerArguments, people: organisation.people
            ) { bench in
                try await bench.fillRealms(of: organisation)
                let source = try await BenchEntries(bench, organisation)
                try await badDay(round, source, bench, &figures)
            }
        }
    }

    private func badDay(
        _ round: Int, _ source: BenchEntries, _ bench: BenchCluster, _ figures: inout BenchFigures
    ) async throws {
        let count = max(100, entries / 10)
        let model = BadDayModel(
            entryCount: count, placesMax: Self.inFlight, latency: 0.02, retryAfter: 1, settle: Self.settle.inSeconds,
            rate503: 0.05, rate429: 0.02, rateLost: 0.02
        )
        _ = try await bench.sap.setSwitches(Self.faults + ",\"seed\":\(round + 1)}")
        try await stopSubmitter(bench)
        let before = try await releasedCount(bench)
        try await write(count, source, bench)
        // From the first call on: starting up and joining the group is not the back end's doing.
        let first = try await sample(bench)
        try bench.cluster.start(.submitter)
        while try await sample(bench).calls == first.calls {
            guard ContinuousClock.now - first.time < Self.badDayMax else {
                throw BenchPlace.Missing(description: "the back end was not called within \(Self.badDayMax)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        let start = ContinuousClock.now
        let most = try await time(of: before + count * 9 / 10, since: start, bench)
        let all = try await time(of: before + count, since: start, bench)
        figures.add("bad day, 90 % of the entries", "s", most)
        let best = model.medians(at: [count * 9 / 10, count])
        figures.add("bad day, 90 % of the model's", "s", best[0])
        figures.add("bad day, share of the model", "", best[0] / most)
        figures.add("bad day, all entries", "s", all)
        figures.add("bad day, all of the model's", "s", best[1])
        figures.add("bad day, last entry / the model's", "", all / best[1])

        // As many once more, while the faults go on, and then end.
        try await write(entries, source, bench)
        _ = try await bench.sap.setSwitches(Self.noFaults)
        let normal = figures.median("fixed, calls")
        figures.add("bad day, normal speed after", "s", try await timeToSpeed(of: normal * 0.8, bench))
    }

    /// Seconds until the back end is called so often a second.
    private func timeToSpeed(of rate: Double, _ bench: BenchCluster) async throws -> Double {
        let start = ContinuousClock.now
        var last = try await sample(bench)
        while ContinuousClock.now - start < .seconds(60) {
            try await Task.sleep(for: .milliseconds(500))
            let next = try await sample(bench)
            if Double(next.calls - last.calls) / (next.time - last.time).inSeconds >= rate {
                return (last.time - start).inSeconds
            }
            last = next
        }
        return 60
    }

    private func stopSubmitter(_ bench: BenchCluster) async throws {
        guard await bench.cluster.terminate(.submitter, within: .seconds(30)) != nil else {
            throw BenchPlace.Missing(description: "the submitter does not stop")
        }
    }

    /// Seconds until so many entries are in.
    private func time(of count: Int, since start: ContinuousClock.Instant, _ bench: BenchCluster) async throws -> Double
    {
        while try await releasedCount(bench) < count {
            guard ContinuousClock.now - start < Self.badDayMax else {
                throw BenchPlace.Missing(description: "\(count) entries were not in within \(Self.badDayMax)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        return (ContinuousClock.now - start).inSeconds
    }

    private func releasedCount(_ bench: BenchCluster) async throws -> Int {
        try await bench.pool.run { connection in
            let rows = try connection.run(
                """
                SELECT count(*) FROM submission.ledger WHERE phase = 'settled' AND confirmed IS NOT NULL
                """)
            return Int(try rows[0].decode(Int64.self))
        }
    }
}
