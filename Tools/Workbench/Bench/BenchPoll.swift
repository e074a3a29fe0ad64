import ArgumentParser
import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres

/// Full comparisons by `backend-poller` that find no difference, compared with reading the same pages alone.
struct BenchPoll: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "Compare full comparisons by backend-poller with reading alone.",
        discussion: """
            The back end is the emulator of e-conomic. The poller has one worker, and the same concurrency limit as \
            the reading. It is restarted before the first comparison of each run.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of people.") var people = 500
    @Option(help: "Number of records per person.") var records = 200

    func validate() throws {
        try BenchOptions.check(people, in: 10...1_000, "--people")
        try BenchOptions.check(records, in: 1...240, "--records")
    }

    static let targets = [
        BenchTarget(
            name: "first comparison / reading", figure: "first comparison", reference: "reading", limit: .atMost(2)),
        BenchTarget(name: "comparison / reading", figure: "comparison", reference: "reading", limit: .atMost(2)),
        BenchTarget(name: "written objects", figure: "written", statistic: .maximum, limit: .atMost(0)),
        BenchTarget(name: "memory", figure: "memory", statistic: .maximum, limit: .atMost(150)),
    ]

    /// Concurrency limit of polls and of reads.
    private static let inFlight = 8
    /// Each has one activity: with the root, 1,741 nodes.
    private static let projectCount = 870
    /// The records of a person are on at most 60 days.
    private static let recordsPerDay = 4
    /// The days that the poller reads by default.
    private static let (pastDays, aheadDays) = (60, 31)
    private static let runMax = Duration.seconds(600)

    private var organisation: Organisation {
        let numbers = (1...Self.projectCount).map { "\($0)" }
        return Organisation(
            customers: [], projects: numbers.map { .init(id: $0, name: "Project \($0)", customer: "") },
            elements: numbers.map { .init(id: $0, name: "Activity \($0)", project: $0) },
            people: (1...people).map { number in
                var person = Organisation.Person("u\(number)@bench.example")
                person.personWorkAgreementExternalId = "\(number)"
                return person
            }, teamMembers: [], entries: [], rowsTotal: 0)
    }

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(
            services: [.relay, .initializer, .submitter, .poller],
            variables: [
                .poller: ["FIELDPOST_WORKER_COUNT": "1", "FIELDPOST_POLLER_INFLIGHT_MAX": "\(Self.inFlight)"]
            ], hasEconomic: true, organisation: organisation)
    }

    /// Adds the records, and waits until `entry-submitter` has created an entry for each.
    func setUp(_ installation: BenchInstallation) async throws {
        try await installation.stage.poll(BenchInstallation.environmentName, every: 86_400)
        try await addRecords(installation.economic)
        _ = try await run(isFull: true, on: installation)
        let expected = people * records
        try await waitUntil("all entries", within: Self.runMax, interval: .milliseconds(500)) {
            try await installation.pool.number(
                """
                SELECT count(*) FROM store.object
                WHERE environment_id = \(installation.environment.rawValue) AND kind = \(Kind.timeEntry)
                """) >= expected
        }
    }

    private struct Record: Encodable {
        let employeeNumber, projectNumber, activityNumber: Int
        let date: Day
        let text: String
        var numberOfHours = 1.5
    }

    private func addRecords(_ economic: SandboxEconomic) async throws {
        // Backdated by a day: each run rereads recent changes.
        try await economic.setSwitches(#"{"clockSkewSeconds":-86400}"#)
        let today = Timestamp.now().day
        try await concurrentMap(Array(1...people), parallelMax: Self.inFlight) { employee in
            for number in 0..<records {
                let project = (employee + number) % Self.projectCount + 1
                try await economic.post(
                    "/sandbox/entries",
                    Record(
                        employeeNumber: employee, projectNumber: project, activityNumber: project,
                        date: today.adding(days: -(number / Self.recordsPerDay)), text: "Work \(number)"))
            }
        }
        try await economic.setSwitches(#"{"clockSkewSeconds":0}"#)
    }

    func measure(_ fixture: Void, on installation: BenchInstallation, _ report: inout BenchReport) async throws {
        report.add("reading", "s", try await read(on: installation).inSeconds)
        try await installation.restart(.poller)
        // An incremental run finishes only after the poller has been assigned its partitions.
        _ = try await run(isFull: false, on: installation)
        let before = try await position(on: installation)
        report.add("first comparison", "s", try await run(isFull: true, on: installation).inSeconds)
        report.add("comparison", "s", try await run(isFull: true, on: installation).inSeconds)
        report.add("written", "objects", Double(try await writtenCount(after: before, on: installation)))
        report.add("memory", "MB", installation.memory(of: .poller, "VmHWM") / 1_024)
    }

    /// Reads the pages of a full comparison.
    private func read(on installation: BenchInstallation) async throws -> Duration {
        guard
            let settings = EconomicSettings(
                baseURL: installation.cluster.economicURL, password: LocalCluster.tokensOfEconomic)
        else { throw ClusterFailure("the tokens of e-conomic are not valid") }
        let backend = EconomicBackend(settings, client: installation.client) { Timestamp.now().day }
        let today = Timestamp.now().day
        let people = installation.people.map {
            BackendPerson(email: $0.email, reference: installation.economic.reference(of: $0))
        }
        // Listings that are equal for all people are cached, as in the poller after an incremental run.
        _ = try await backend.reportingData(of: people[0])
        let start = ContinuousClock.now
        try await concurrentMap(people, parallelMax: Self.inFlight) { person in
            _ = try await backend.reportingData(of: person)
            let entries = try await backend.entries(
                of: person, from: today.adding(days: -Self.pastDays), through: today.adding(days: Self.aheadDays))
            guard entries.count == records else { throw ClusterFailure("\(entries.count) records were read") }
        }
        return ContinuousClock.now - start
    }

    /// Requests a run, and returns the time from its first poll until all are finished.
    private func run(isFull: Bool, on installation: BenchInstallation) async throws -> Duration {
        let environment = installation.environment.rawValue
        func number(_ query: Statement) async throws -> Int { try await installation.pool.number(query) }
        func waitUntilEnd(after run: Int64) async throws {
            try await waitUntil("the end of a run", within: Self.runMax, interval: .milliseconds(50)) {
                try await number(
                    """
                    SELECT count(*) FROM poll.run
                    WHERE environment_id = \(environment) AND run > \(run) AND settled_run = run
                    """) == 1
            }
        }
        try await waitUntilEnd(after: 0)
        let before = Int64(try await position(on: installation))
        let last = Int64(
            try await number(
                """
                UPDATE poll.run SET started_at = now() - interval '2 days',
                    full_started_at = CASE WHEN \(isFull) THEN NULL ELSE full_started_at END
                WHERE environment_id = \(environment) RETURNING run
                """))
        try await waitUntil("the start of a run", within: Self.runMax, interval: .milliseconds(2)) {
            try await number(
                """
                SELECT count(*) FROM store.change
                WHERE environment_id = \(environment) AND position > \(before) AND kind = \(Kind.poll)
                """) > 0
        }
        let start = ContinuousClock.now
        // A full run has a poll of each person, and one of the changes.
        let count = isFull ? people + 1 : 1
        try await waitUntil("the polls of a run", within: Self.runMax, interval: .milliseconds(10)) {
            try await number(
                "SELECT count(*) FROM poll.finished WHERE environment_id = \(environment) AND run > \(last)") >= count
        }
        let duration = ContinuousClock.now - start
        try await waitUntilEnd(after: last)
        return duration
    }

    private func position(on installation: BenchInstallation) async throws -> Int {
        try await installation.pool.number(
            "SELECT position FROM realm.environment WHERE id = \(installation.environment.rawValue)")
    }

    /// The number of objects written after a position, without polls.
    private func writtenCount(after position: Int, on installation: BenchInstallation) async throws -> Int {
        try await installation.pool.number(
            """
            SELECT count(*) FROM store.object
            WHERE environment_id = \(installation.environment.rawValue) AND position > \(Int64(position))
                AND kind <> \(Kind.poll)
            """)
    }
}
