import Foundation
import LocalCluster
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// The primary is killed, and a lagging standby is promoted: devices, Kafka and the back end have changes that the
    /// database lacks.
    struct FailoverTests {
        /// `FAILOVER_LOST` is the minimum number of lost releases, `FAILOVER_PEOPLE` the number of people.
        @Test(.timeLimit(.minutes(20))) func devicesRealmsAndBackEndAgreeAfterAFailoverWithLoss() async throws {
            let variables = ProcessInfo.processInfo.environment
            let lostMin = variables["FAILOVER_LOST"].flatMap { Int64($0) } ?? 10
            let people = variables["FAILOVER_PEOPLE"] ?? "6"
            var options = LocalCluster.Options.quick
            options.hasStandby = true
            options.services.append(.poller)
            options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
            // Entries must be in flight for a while.
            options.variables[.submitter]?["FIELDPOST_SUBMITTER_INFLIGHT_MAX"] = "2"
            try await withCluster("failover", options) { cluster in
                try await cluster.post("/sandbox/switches", Data(#"{"latencyMs":100}"#.utf8))
                let demo = try cluster.startDemo(["--people", people, "--without-deletions"])
                try await cluster.waitForReleases(10, more: 0, demo)
                let standby = try #require(cluster.standby)
                try standby.cutOff()
                let atCut = try cluster.releasedCount()
                try await cluster.waitForReleases(lostMin, more: atCut, demo)
                let atDeath = try cluster.releasedCount()
                await cluster.kill9(.database)
                try standby.promote()
                let left = try cluster.releasedCount()
                print("\(atDeath) entries had been released, \(left) are known to the promoted standby")
                #expect(left + lostMin <= atDeath)

                for part in options.services {
                    try await eventually("\(part.name) logs the required action", within: .seconds(120)) {
                        let output = cluster.process(part)?.logTail(bytesMax: 100_000) ?? ""
                        return output.contains("run: fieldpost restore") ? nil : String(output.suffix(500))
                    }
                }
                print(try await cluster.runCommand(["restore"]))
                try await cluster.post("/sandbox/switches", Data(#"{"latencyMs":0}"#.utf8))
                try await eventually("the demo ends", within: .seconds(600)) {
                    // Ended services are restarted, as a supervisor does.
                    for part in options.services where cluster.process(part)?.isRunning == false {
                        try cluster.start(part)
                    }
                    return demo.isRunning ? demo.logTail(bytesMax: 500) : nil
                }
                try await demo.expectNoDifferences(within: .seconds(1))
            }
        }
    }
}

extension LocalCluster {
    /// The number of entries confirmed by the back end.
    fileprivate func releasedCount() throws -> Int64 {
        var connection = try Connection(conninfo)
        return try connection.run("SELECT count(*) FROM submission.ledger WHERE confirmed IS NOT NULL")[0].value(0)
    }

    fileprivate func waitForReleases(_ count: Int64, more before: Int64, _ demo: ClusterProcess) async throws {
        try await eventually("\(count) entries are released", within: .seconds(300)) {
            try #require(demo.isRunning, "\(demo.logTail())")
            let found = try releasedCount()
            return found >= before + count ? nil : "\(found)"
        }
    }
}
