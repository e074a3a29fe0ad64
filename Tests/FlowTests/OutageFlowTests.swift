import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import Testing

extension FlowTests {
    /// A back end that is unavailable for long.
    struct OutageFlowTests {
        /// The submitter's backoffs are 600 times shorter than their defaults: the longest backoff of a key, and
        /// between two probes, is 100 ms instead of 60 s. For backoffs, attempts and the circuit breaker, 30 seconds
        /// correspond to five hours. The call timeout is not shortened: HTTP 503 for 10 s, then responses after the
        /// timeout (the write is executed, its response lost), then a port without a listener.
        private static let outage = Duration.seconds(30)
        /// The second environment's entries by which its speed is measured, and the pauses in which the first one's are
        /// written meanwhile.
        private static let windowCount = 400
        private static let pause = Duration.milliseconds(40)
        /// The second back end's concurrency limit, not the machine, limits the rate: other load matters less.
        private static let latency = #"{"latencyMs": 100}"#
        /// The minimum share of that rate.
        private static let speedMin = 0.5
        /// Other processes may slow down a single measurement; a blocked environment is slow in all of them.
        private static let windowsMax = 6

        @Test(.timeLimit(.minutes(20))) func outageOfFiveHoursDoesNotDelayOtherEnvironments() async throws {
            try await withCluster("outage", .outage) { cluster in
                let flow = try await DirectFlow(cluster, people: 5, entries: 200, seed: 4)
                let books = try await BooksFlow(cluster)
                // Both are there; the workers have their partitions.
                _ = try await books.release(10)
                try await books.behave(Self.latency)
                async let first: Void = flow.write(through: 100, pause: Self.pause)
                let before = try await books.release(Self.windowCount)
                try await first
                try await flow.verify(through: 100)
                let revokedBefore = try await cluster.metric("fieldpost_partitions_revoked_total", of: .submitter)
                let released = try Self.releasedCount(cluster)

                try await cluster.post("/sandbox/switches", Data(#"{"rate503": 1}"#.utf8))
                let start = ContinuousClock.now
                async let second: Void = flow.write(from: 100, pause: Self.pause)
                var ratios: [Double] = []
                repeat {
                    ratios.append(try await books.release(Self.windowCount) / before)
                } while ratios.count < Self.windowsMax && ratios.allSatisfy { $0 < Self.speedMin }
                try await second
                print("a second environment: \(before) entries/s, meanwhile \(ratios) of that")
                #expect(ratios.contains { $0 >= Self.speedMin }, "\(ratios) of \(before) entries/s")
                let booksCount = 30 + (1 + ratios.count) * Self.windowCount
                #expect(try Self.releasedCount(cluster) <= released, "SAP is still unavailable")
                try await Self.expectBacklog(cluster)
                try await Self.wait(until: start + Self.outage / 3)
                try await cluster.post(
                    "/sandbox/switches", Data(#"{"rate503": 0, "rateSlow": 1, "slowMs": 1500}"#.utf8))
                try await Self.wait(until: start + Self.outage * 2 / 3)
                await cluster.kill9(.sap)
                try await Self.wait(until: start + Self.outage)
                try await Self.expectBacklog(cluster)
                _ = try await books.release(20)
                // Waiting keys are in PostgreSQL, not in the topic.
                try await eventually("the submitter has finished all events") {
                    let (end, lag) = try await cluster.lag(of: Services.entrySubmitter.name)
                    #expect(end >= 200 + booksCount, "each entry was written")
                    return lag == 0 ? nil : "\(lag) of \(end)"
                }

                try cluster.start(.sap)
                let back = ContinuousClock.now
                try await flow.verify()
                print("everything has drained \(ContinuousClock.now - back) after the back end recovered")
                #expect(try await cluster.metric("fieldpost_partitions_revoked_total", of: .submitter) == revokedBefore)
                let recorded = try await books.recorded()
                #expect(recorded.all == booksCount && recorded.different == booksCount)
                #expect(try await cluster.parked(SmallOrganisation.environment).isEmpty)
            }
        }

        /// 429 with Retry-After for one call pauses all calls of the environment.
        @Test(.timeLimit(.minutes(20))) func retryAfterPausesAllCallsOfTheEnvironment() async throws {
            var options = LocalCluster.Options.withoutGateway
            options.emulators.append(.economic)
            try await withCluster("retry-after", options) { cluster in
                let books = try await BooksFlow(cluster)
                try await books.behave(#"{"rate429": 1, "retryAfterSeconds": 3}"#)
                try books.submit(60)
                try await eventually("all keys are parked") {
                    let count = try await cluster.parked(BooksFlow.environment).count
                    return count == 60 ? nil : "\(count)"
                }
                let (start, before) = (ContinuousClock.now, try await books.refusedCount())
                try await eventually("it is probed some times") {
                    let count = try await books.refusedCount()
                    return count >= before + 4 ? nil : "\(count - before)"
                }
                let callCount = try await books.refusedCount() - before
                let waits = Int((ContinuousClock.now - start) / .seconds(3)) + 1
                // The worker sends one probe after each backoff, not one per key.
                #expect(callCount <= waits, "\(callCount) calls in \(waits) waits")
                let parked = try await cluster.parked(BooksFlow.environment)
                #expect(parked.allSatisfy { $0.attempts == 0 && $0.state != "dead" })
                try await books.behave(#"{"rate429": 0}"#)
                try await books.expectReleased(60)
                #expect(try await books.recorded().all == 60)
            }
        }

        /// The rate is kept by all workers together, and one person's flood does not take it from another.
        @Test(.timeLimit(.minutes(20))) func rateLimitIsKeptWithFairQueueing() async throws {
            try await withCluster("rate", .withoutGateway) { cluster in
                let flow = try await DirectFlow(cluster, people: 2, entries: 200, seed: 6)
                try await cluster.runCommand([
                    "environment", "edit", SmallOrganisation.environment, "--calls-per-second", "20",
                ])
                let (ana, ben) = (flow.organisation.people[0].email, flow.organisation.people[1].email)
                // Both are written before the first is submitted, however long that takes.
                await cluster.kill9(.submitter)
                try Self.put(flow.plans.filter { $0.person.email == ana }, cluster)
                try Self.put(Array(flow.plans.filter { $0.person.email == ben }.prefix(3)), cluster)
                let start = ContinuousClock.now
                try cluster.start(.submitter)
                try await eventually("the second person's entries are released") {
                    var writer = try RealmWriter(cluster.conninfo)
                    let count = try writer.count(.released, of: ben)
                    return count == 3 ? nil : "\(count)"
                }
                var writer = try RealmWriter(cluster.conninfo)
                let done = try writer.count(.released, of: ana)
                print("\(done) of the first person's 100 entries are released before the second's 3")
                // Without fair queueing they would be the last.
                #expect(done <= 90)
                try await eventually("all are released") {
                    var writer = try RealmWriter(cluster.conninfo)
                    let count = try writer.count(.released)
                    return count == 103 ? nil : "\(count)"
                }
                let passed = (ContinuousClock.now - start) / .seconds(1)
                print("103 entries took \(passed) s at 20 a second")
                // Each takes two calls, the write and what reads it back; 20 may be saved up.
                let least = Double(2 * 103 - 20) / 20 - 0.5
                #expect(passed >= least)
            }
        }

        /// An unreadable entry, and one with two records in the back end, are dead-lettered; other entries are not
        /// affected.
        @Test(.timeLimit(.minutes(20))) func brokenEntryDoesNotDelayOthers() async throws {
            // The entry that cannot be read has no status log: its key is dead.
            try await withCluster("broken", .withoutGateway, leaving: ["statuses"]) { cluster in
                let flow = try await DirectFlow(cluster, people: 2, entries: 60, seed: 7)
                let (unreadable, twice) = (UUID(), flow.plans[0])
                var writer = try RealmWriter(cluster.conninfo)
                try writer.put(
                    unreadable, of: twice.person.email,
                    json: try CanonicalJSON(#"{"status": "dreamt", "reporting": []}"#))
                try await flow.recordElsewhere(twice, times: 2)
                try await cluster.post("/sandbox/switches", Data(#"{"rate500AfterWrite": 1}"#.utf8))
                try writer.put(twice.id, of: twice.person.email, twice.first)
                try await eventually("its outcome is unknown") {
                    let rows = try await cluster.parked(SmallOrganisation.environment)
                    return rows.contains { $0.key.contains(twice.id.text) } ? nil : "not yet"
                }
                try await cluster.post("/sandbox/switches", Data(#"{"rate500AfterWrite": 0}"#.utf8))
                try Self.put(Array(flow.plans.dropFirst()), cluster)
                try await eventually("all others are released") {
                    var writer = try RealmWriter(cluster.conninfo)
                    let count = try writer.count(.released)
                    return count == 59 ? nil : "\(count)"
                }
                try await eventually("the broken entries are dead-lettered") {
                    let dead = try await cluster.parked(SmallOrganisation.environment).filter { $0.state == "dead" }
                    guard dead.count == 2 else { return "\(dead.map(\.reason))" }
                    let isTwice = dead.contains {
                        $0.key.contains(twice.id.text) && $0.reason.contains("3 records")
                    }
                    return isTwice && dead.contains { $0.key.contains(unreadable.text) } ? nil : "\(dead)"
                }
            }
        }

        // MARK: Looking

        private static func put(_ plans: [PlannedEntry], _ cluster: LocalCluster) throws {
            var writer = try RealmWriter(cluster.conninfo)
            for plan in plans { try writer.put(plan.id, of: plan.person.email, plan.first) }
        }

        private static func releasedCount(_ cluster: LocalCluster) throws -> Int {
            var writer = try RealmWriter(cluster.conninfo)
            return try writer.count(.released)
        }

        /// Deferred keys are listed, and none is dead-lettered.
        private static func expectBacklog(_ cluster: LocalCluster) async throws {
            let rows = try await cluster.parked(SmallOrganisation.environment)
            #expect(rows.count >= 50, "\(rows.count)")
            let dead = rows.filter { $0.state == "dead" }
            #expect(dead.isEmpty, "\(dead)")
            let attempts = rows.map(\.attempts).max() ?? 0
            print("\(rows.count) keys wait, \(rows.count { $0.state == "circuit" }) of them for the circuit;")
            print("the most attempts are \(attempts)")
        }

        private static func wait(until instant: ContinuousClock.Instant) async throws {
            try await Task.sleep(until: instant, clock: .continuous)
        }
    }
}

extension LocalCluster.Options {
    /// Keys' waits are 600 times shorter than their defaults.
    static var outage: LocalCluster.Options {
        var options = LocalCluster.Options.withoutGateway
        options.emulators.append(.economic)
        options.variables[.submitter, default: [:]].merge([
            "FIELDPOST_BACKEND_CALL_MAX": "1s", "FIELDPOST_SUBMITTER_RETRY_MIN": "10ms",
            "FIELDPOST_SUBMITTER_RETRY_MAX": "100ms", "FIELDPOST_SUBMITTER_SETTLE_MIN": "100ms",
            "FIELDPOST_SUBMITTER_INFLIGHT_MAX": "8",
        ]) { $1 }
        return options
    }
}

extension DirectFlow {
    /// Records of a planned entry that are not in the submitter's ledger.
    fileprivate func recordElsewhere(_ plan: PlannedEntry, times: Int) async throws {
        let (client, settings) = (
            Client(), SAPSettings(baseURL: cluster.sapURL, user: "FIELDPOST", password: LocalCluster.passwordOfSAP)
        )
        defer { client.shutDown() }
        let day = try #require(plan.first.entryDate)
        let person = BackendPerson(
            email: plan.person.email,
            reference: ["personWorkAgreementExternalId": plan.person.agreement, "companyCode": "1010"])
        for _ in 0..<times {
            _ = try await SAPBackend(settings, client: client) { day }.create(
                Submission(
                    marker: EntryMarker.marker(of: plan.id), person: person, day: day, durationSeconds: 1_800,
                    text: "elsewhere", references: ["Accounting code": "P1.1"]))
        }
    }
}
