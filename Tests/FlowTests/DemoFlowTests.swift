import Foundation
import LocalCluster
import Postgres
import Testing

extension FlowTests {
    /// The main job: devices, gateway, relay, submitter and SAP, judged by `workbench demo`.
    struct DemoFlowTests {
        @Test(.timeLimit(.minutes(20)), arguments: [[], ["--entra"]])
        func devicesRealmsAndBackEndAgree(options: [String]) async throws {
            try await withSuite("demo\(options.joined())") { suite in
                let demo = try suite.startDemo(["--people", "6"] + options)
                try await demo.expectNoDifferences()
            }
        }

        /// The same with the other back end.
        @Test(.timeLimit(.minutes(20))) func devicesRealmsAndEconomicAgree() async throws {
            var options = LocalCluster.Options.quick
            options.hasEconomic = true
            try await withSuite("demo-economic", options) { suite in
                let demo = try suite.startDemo(["--people", "4", "--economic", suite.economicURL])
                try await demo.expectNoDifferences()
            }
        }

        /// Their first people and rows have the same names, and SAP's stand-in is one.
        @Test(.timeLimit(.minutes(20))) func generatedPeopleAndTimeSheetsDoNotMeet() async throws {
            try await withSuite("both") { suite in
                let folder = try timeSheets(in: suite.folder.path)
                for _ in 0..<2 {
                    for options in [["--people", "2"], ["--data", folder]] {
                        let demo = try suite.startDemo(options)
                        try await demo.expectNoDifferences()
                    }
                }
            }
        }

        /// Time sheets of two people, in the first generated weeks.
        private func timeSheets(in folder: String) throws -> String {
            let files = [
                "tree-tock-projects.csv": """
                id,parent_id,code,title,kind
                a1,,a1,Rail Agency,agency
                c1,a1,c1,Code,accounting_code
                p1,c1,p1,Rail Survey,project

                """,
                "timesheets-tock-employees.csv": """
                employee,start_date,end_date
                emp001,2020-01-01,2030-01-01
                emp002,,

                """,
                "timesheets-tock.csv": """
                entry_id,employee,period_start,period_end,project_id,accounting_code,hours
                1,emp001,2024-01-07,2024-01-13,1,c1,40.00
                2,emp001,2024-01-14,2024-01-20,1,c1,0.00
                3,emp002,2024-01-07,2024-01-13,1,c1,12.50

                """,
            ]
            let path = folder + "/time-sheets"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for (name, text) in files { try Data(text.utf8).write(to: URL(filePath: path + "/" + name)) }
            return path
        }

        /// 5 % 503, 2 % 429, 2 % of the answers lost after the write, 1 % committed late, 20 ms latency; each kind of
        /// fault comes at least once.
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func theyAgreeWhileTheBackEndMisbehaves(backend: ScenarioBackend) async throws {
            var options = LocalCluster.Options.quick
            options.hasEconomic = backend == .economic
            try await withSuite("chaos-\(backend.rawValue)", options) { suite in
                let economic = backend == .economic ? ["--economic", suite.economicURL] : []
                let demo = try suite.startDemo(["--people", "6", "--chaos"] + economic)
                try await demo.expectNoDifferences()
                let counts = try await backend.stats(suite)
                let faults = ["answered503", "answered429", "lostAfterWrite", "lateCommit"].map { counts[$0] ?? 0 }
                #expect(faults.allSatisfy { $0 > 0 }, "\(faults) of \(counts)")
            }
        }

        /// Two instances of every service. With `FLOW_DATA` the real time sheets are used; `FLOW_KILLS` and `FLOW_SEED`
        /// say how often and when, `FLOW_FREEZE_MAX` for how many seconds at most a part is frozen.
        @Test(.timeLimit(.minutes(60))) func theyAgreeWhateverIsKilled() async throws {
            let variables = ProcessInfo.processInfo.environment
            let seed = Killer.printedSeed("kills with devices", given: variables["FLOW_SEED"])
            let count = variables["FLOW_KILLS"].flatMap { Int($0) } ?? 20
            let data = variables["FLOW_DATA"]
            let size = data.map { ["--data", $0, "--time-limit", "3000"] } ?? ["--people", "6", "--seed", "\(seed)"]
            var options = LocalCluster.Options.quick
            options.services = LocalCluster.Part.services.flatMap { [$0, $0.second] }
            // The demo's entries are some years old.
            options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
            // A few people's entries are to be on their way as long as it takes to kill everything several times.
            if data == nil { options.variables[.submitter]?["FIELDPOST_SUBMITTER_INFLIGHT_MAX"] = "2" }
            let latency = data == nil ? 1_000 : 500
            let freezeMax = Duration.seconds(variables["FLOW_FREEZE_MAX"].flatMap { Int($0) } ?? 15)
            try await withSuite("kills", options) { suite in
                try await suite.post("/sandbox/switches", Data(#"{"latencyMs":\#(latency)}"#.utf8))
                let demo = try suite.startDemo(size)
                try await eventually("entries are on their way") {
                    let said = demo.logTail(bytesMax: 500)
                    return said.contains("entries on their way") || !demo.isRunning ? nil : said
                }
                let environment = data == nil ? "demo" : "tock"
                try await suite.runCommand(["environment", "edit", environment, "--poll-interval", "5"])
                let killer = Killer(
                    suite: suite, parts: options.services + [.database, .broker], seed: seed,
                    pause: .milliseconds(1_500), freezeMax: freezeMax)
                try await killer.kill(count)
                #expect(demo.isRunning, "the entries were through before \(count) kills")
                try await suite.post("/sandbox/switches", Data(#"{"latencyMs":0}"#.utf8))
                try await demo.expectNoDifferences(within: .seconds(data == nil ? 600 : 3_000))
                try await eventually("everybody was polled three times") {
                    let run = try suite.lastRunOfEverybody()
                    return run >= 3 ? nil : "\(run)"
                }
            }
        }
    }
}

extension LocalCluster {
    func startDemo(_ arguments: [String]) throws -> ClusterProcess {
        try startCommand(
            [
                "demo", "--gateway", gatewayURL, "--identity", identityURL, "--sap", sapURL, "--database", conninfo,
            ] + arguments, of: "workbench", log: "demo")
    }

    /// The newest run of polls that, or a later one, is done for everybody.
    fileprivate func lastRunOfEverybody() throws -> Int64 {
        var connection = try Connection(conninfo)
        return try connection.run("SELECT coalesce(min(run), 0) FROM poll.finished")[0].value(0)
    }
}

extension ClusterProcess {
    func expectNoDifferences(within: Duration = .seconds(600)) async throws {
        try await eventually("the demo ends", within: within) { isRunning ? logTail(bytesMax: 500) : nil }
        let said = logTail(bytesMax: 20_000)
        #expect(end == .exited(status: 0), "\(said)")
        #expect(said.contains("verdict: no differences"), "\(said)")
    }
}
