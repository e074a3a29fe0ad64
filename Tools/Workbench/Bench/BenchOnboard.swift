import Access
import ArgumentParser
import Essentials
import FoundationEssentials
import HTTPClient
import Identity
import LocalCluster
import Model
import ObjectStore
import Postgres
import Synchronization

/// Many people who come in at once, while one of two instances is killed.
struct BenchOnboard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "onboard",
        abstract: "Simultaneous onboardings against the sandbox's provider, while one of two instances is killed.")

    @Option(help: "People who come in at once.")
    var count = 2_000
    @Flag(help: "Do not kill an instance.")
    var noKill = false
    @OptionGroup var options: BenchClusterOptions

    private static let filesBeside = 2_000
    /// So many have come in when the instance is killed.
    private static let killedAfter = 0.25

    func run() async throws {
        try BenchSockets.allowFiles(count * 4 + Self.filesBeside)
        var figures = BenchFigures()
        let variables = [
            "FIELDPOST_ONBOARDING_CLIENT_MAX": "1000000", "FIELDPOST_ONBOARDING_DOMAIN_MAX": "1000000",
            "FIELDPOST_ONBOARDING_ADDRESS_MAX": "1000000", "FIELDPOST_ONBOARDING_SESSION_MAX": "10m",
        ]
        var isShort = false
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            let people = (0..<count).map { BenchCluster.person("u\($0)@bench.example") }
            try await BenchCluster.with(
                services: [.onboarding, .onboarding.second],
                variables: [.onboarding: variables, .onboarding.second: variables], people: people
            ) { bench in
                try await bench.cluster.runCommand([
                    "environment", "edit", "bench", "--client-id", LocalCluster.clientID, "--client-secret-from",
                    LocalCluster.clientSecretVariable,
                ])
                if try await !measure(bench, &figures) { isShort = true }
            }
        }
        let kill = noKill ? "" : ", one of two instances killed"
        print(figures.table(title: "\(count) onboardings at once\(kill), medians of \(options.rounds) rounds"))
        print(BenchFigures.ratio("lost", figures.median("lost"), aim: 0, isAtMost: true))
        print("realms are filled by the bench, not by realm-initializer")
        if isShort { throw ExitCode(1) }
    }

    /// - Returns: Whether all came in, and an instance was killed meanwhile.
    private func measure(_ bench: BenchCluster, _ figures: inout BenchFigures) async throws -> Bool {
        let client = Client()
        defer { client.shutDown() }
        _ = try await client.send(
            Request(
                "POST", bench.cluster.identityURL + "/sandbox/switches", body: Array(#"{"skipsConsent":true}"#.utf8)))
        let progress = OnboardProgress()
        let initializer = Task { try await fillRealms(bench) }
        let killer = Task {
            if noKill { return }
            while progress.count < Int(Double(count) * Self.killedAfter) { try await Task.sleep(for: .milliseconds(5)) }
            await bench.cluster.kill9(.onboarding.second)
            progress.killed()
            try await Task.sleep(for: .seconds(2))
            try bench.cluster.start(.onboarding.second)
        }
        defer {
            initializer.cancel()
            killer.cancel()
        }
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for (index, person) in bench.people.enumerated() {
                group.addTask {
                    var phone = BenchPhone(
                        client: client, email: person.email,
                        urls: [bench.cluster.onboardingURL, bench.cluster.home.url(.onboarding.second)],
                        instance: index % 2
                    )
                    let begun = ContinuousClock.now
                    let isIn = await phone.comeIn(within: .seconds(180))
                    progress.ended(isIn ? .now - begun : nil, attempts: phone.attemptCount)
                }
            }
        }
        let seconds = (ContinuousClock.now - start).inSeconds
        let result = progress.result
        figures.add("came in", "people", Double(result.times.count))
        figures.add("lost", "people", Double(count - result.times.count))
        figures.add("begun anew", "times", Double(result.attempts - count))
        figures.add("per second", "people/s", Double(result.times.count) / seconds)
        figures.add("register to data ready, median", "ms", result.times.percentile(0.5))
        figures.add("register to data ready, p99", "ms", result.times.percentile(0.99))
        figures.add("largest memory of an instance", "MB", bench.memory(of: .onboarding, "VmHWM") / 1_024)
        return result.times.count == count && (noKill || progress.isKilled)
    }

    /// Does what `realm-initializer` does at its end, without a back end: what is measured is onboarding.
    private func fillRealms(_ bench: BenchCluster) async throws {
        while !Task.isCancelled {
            let environment = bench.environment
            let filled = try await bench.pool.run { connection in
                let rows = try connection.run(
                    """
                    SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
                    WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.realms)
                        AND NOT (fields::json->>'isInitialized')::boolean LIMIT 500
                    """)
                var batch = WriteBatch(environment: environment)
                for (decision, object) in try RealmObject.byKey(rows).values.enumerated() {
                    try batch.patch(object, CanonicalJSON(#"{"isInitialized":true}"#), decision: decision)
                }
                return try batch.commit(on: &connection).positions.count
            }
            if filled == 0 { try await Task.sleep(for: .milliseconds(20)) }
        }
    }
}

/// How far all have come.
private final class OnboardProgress: Sendable {
    private let state = Mutex<(times: [Double], attempts: Int, isKilled: Bool)>(([], 0, false))

    var isKilled: Bool { state.withLock { $0.isKilled } }
    var count: Int { state.withLock { $0.times.count } }
    var result: (times: [Double], attempts: Int) { state.withLock { ($0.times.sorted(), $0.attempts) } }

    func killed() {
        state.withLock { $0.isKilled = true }
        print("an instance was killed when \(count) had come in")
    }

    func ended(_ time: Duration?, attempts: Int) {
        state.withLock { state in
            if let time { state.times.append(time.inSeconds * 1_000) }
            state.attempts += attempts
        }
    }
}

extension [Double] {
    /// - Precondition: Sorted.
    fileprivate func percentile(_ part: Double) -> Double {
        isEmpty ? .nan : self[Swift.min(count - 1, Int(Double(count) * part))]
    }
}
