import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// Devices, gateway, relay, submitter and SAP, verified by `workbench demo`.
    struct DemoFlowTests {
        private static let withCompass = {
            var options = LocalCluster.Options.quick
            options.services += [.defectNotifier, .defectSubmitter]
            options.emulators.append(.compass)
            return options
        }()

        @Test(.timeLimit(.minutes(20)), arguments: [[], ["--entra"]])
        func devicesRealmsAndBackEndAgree(options: [String]) async throws {
            try await withCluster("demo\(options.joined())", Self.withCompass) { cluster in
                let demo = try cluster.startDemo(["--people", "6", "--compass", cluster.compassURL] + options)
                try await demo.expectNoDifferences()
                let demoLog = demo.logTail(bytesMax: 20_000)
                for row in ["notices of defects", "defects mirrored", "changes of defects from devices"] {
                    #expect(try demoLog.contains(Regex(row + " +[1-9]")), "\(row): \(demoLog)")
                }
            }
        }

        /// Without faults no service has anything to warn of, nor PostgreSQL.
        @Test(.timeLimit(.minutes(20))) func faultFreeDemoLogsNoWarning() async throws {
            // Services warn of brokers that are not available yet, so they start after the emulators.
            let services = LocalCluster.Part.services
            var options = LocalCluster.Options()
            (options.services, options.idle) = ([], services)
            options.emulators.append(.compass)
            try await withCluster("no-warnings", options) { cluster in
                try await cluster.startAll(services)
                let demo = try cluster.startDemo(["--people", "6", "--compass", cluster.compassURL])
                try await demo.expectNoDifferences()
                var levels: Set<String> = []
                for part in services {
                    let lines = cluster.process(part)?.logTail(bytesMax: .max).split(separator: "\n") ?? []
                    for line in lines {
                        guard let level = line.firstMatch(of: /"level":"([a-z]+)"/)?.1 else { continue }
                        // The machine is busy with other tests. `ConsumerTests` covers timeouts that had a cause.
                        if line.contains("_TIMED_OUT") { continue }
                        levels.insert(String(level))
                        #expect(["trace", "debug", "info", "notice"].contains(level), "\(line)")
                    }
                }
                #expect(levels.contains("info"))
                let database = cluster.process(.database)?.logTail(bytesMax: .max) ?? ""
                #expect(database.contains("LOG: ") && !database.contains("WARNING: "), "\(database)")
            }
        }

        /// The same with e-conomic.
        @Test(.timeLimit(.minutes(20))) func devicesRealmsAndEconomicAgree() async throws {
            var options = LocalCluster.Options.quick
            options.emulators.append(.economic)
            try await withCluster("demo-economic", options) { cluster in
                let demo = try cluster.startDemo(["--people", "4", "--economic", cluster.economicURL])
                try await demo.expectNoDifferences()
            }
        }

        /// The first people and rows of both data sets have the same names in one SAP emulator.
        @Test(.timeLimit(.minutes(20))) func generatedPeopleAndTimeSheetsDoNotMeet() async throws {
            try await withCluster("both") { cluster in
                let folder = try timeSheets(in: cluster.folder.path)
                for _ in 0..<2 {
                    for options in [["--people", "2"], ["--data", folder]] {
                        let demo = try cluster.startDemo(options)
                        try await demo.expectNoDifferences()
                        guard options.contains("--data") else { continue }
                        let demoLog = demo.logTail(bytesMax: 20_000)
                        for line in ["tasks completed 2", "tasks deleted 1", "tasks without their team 1"] {
                            let words = line.split(separator: " ").joined(separator: " +")
                            #expect(try demoLog.contains(Regex(words)), "\(line): \(demoLog)")
                        }
                    }
                }
                let other = try cluster.startDemo(["--people", "3"])
                try await eventually("the demo ends", within: .seconds(300)) {
                    other.isRunning ? other.logTail(bytesMax: 500) : nil
                }
                let demoLog = other.logTail(bytesMax: 5_000)
                #expect(other.end == .exited(status: 1) && demoLog.contains("--environment"), "\(demoLog)")
            }
        }

        /// Killed during tasks and appointments, and run again.
        @Test(.timeLimit(.minutes(20))) func interruptedDemoResumes() async throws {
            try await withCluster("interrupted", Self.withCompass) { cluster in
                let options = ["--people", "6", "--compass", cluster.compassURL]
                let first = try cluster.startDemo(options)
                try await eventually("calendars are edited", within: .seconds(300)) {
                    let demoLog = first.logTail(bytesMax: 500)
                    return demoLog.contains("edits seen") || !first.isRunning ? nil : demoLog
                }
                first.kill9()
                _ = await onOwnThread { first.waitForEnd() }
                try await cluster.startDemo(options).expectNoDifferences()
            }
        }

        /// Time sheets of two people, in the first generated weeks, service requests of two crews, and the edits of two
        /// meetings.
        private func timeSheets(in folder: String) throws -> String {
            var files = [
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
            let meeting = { (file: String, operation: String, chair: String, times: [String]) in
                let schedule = times.map { #"{"time":"\#($0)","day":"Monday","irc":"room"}"# }
                let state = #"{"project":"P","schedule":[\#(schedule.joined(separator: ","))],"chair":"\#(chair)"}"#
                return #"{"file":"\#(file)","op":"\#(operation)","commit":"c","authored":"2014-01-02T03:04:05+00:00","#
                    + #""meeting":\#(operation == "delete" ? "null" : state)}"# + "\n"
            }
            let edits = [
                meeting("a.yaml", "add", "Ana Ito (ana), Bo Li", ["0900", "1600"]),
                meeting("b.yaml", "add", "Bo Li", ["1000"]),
                meeting("a.yaml", "change", "Ana Ito (ana), Bo Li", ["1000"]),
                meeting("a.yaml", "change", "Bo Li, Ana Ito", ["1000", "1100"]),
                meeting("b.yaml", "delete", "", []),
            ]
            let request = { (number: Int, status: String, crew: String, closed: String) in
                "1-\(number),12/31/2017 0\(number + 1):00:00 AM,Bulky Items,\(status),\(crew),01/03/2018 12:00:00 AM,"
                    + "\(closed),\"1 A ST, 90026\",90026,34.5,-118.25\n"
            }
            let path = folder + "/time-sheets"
            let requests =
                "SRNumber,CreatedDate,RequestType,Status,AssignTo,ServiceDate,ClosedDate,Address,ZipCode,Latitude,"
                + "Longitude\n" + request(0, "Closed", "NC", "01/02/2018 03:04:05 PM")
                + request(1, "Cancelled", "NC", "01/01/2018 03:04:05 PM") + request(2, "Open", "WV", "")
                + request(3, "Referred Out", "WV", "01/01/2018 01:00:00 PM")
                + request(4, "Closed", "", "01/02/2018 03:04:05 PM")
            files["tasks-la311-2017.csv"] = requests
            files["calendar-openstack-meetings-history.jsonl"] = edits.joined()
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for (name, text) in files { try Data(text.utf8).write(to: URL(filePath: path + "/" + name)) }
            return path
        }

        /// 5 % 503, 2 % 429, 2 % of the answers lost after the write, 1 % committed late, 20 ms latency; each kind of
        /// fault comes at least once.
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func dataAgreeDespiteInjectedFaults(backend: ScenarioBackend) async throws {
            var options = LocalCluster.Options.quick
            if backend == .economic { options.emulators.append(.economic) }
            try await withCluster("faults-\(backend.rawValue)", options) { cluster in
                let economic = backend == .economic ? ["--economic", cluster.economicURL] : []
                let demo = try cluster.startDemo(["--people", "6", "--faults"] + economic)
                try await demo.expectNoDifferences()
                let counts = try await backend.stats(cluster)
                let faults = ["answered503", "answered429", "lostAfterWrite", "lateCommit"].map { counts[$0] ?? 0 }
                #expect(faults.allSatisfy { $0 > 0 }, "\(faults) of \(counts)")
            }
        }

        /// Two instances of every service.
        @Test(.timeLimit(.minutes(60)), arguments: Seeds.random(1, for: "kills"))
        func dataAgreeDespiteKills(seed: UInt64) async throws {
            try await runWorkbench(["kill-test", "--seed", "\(seed)"], within: .seconds(2_400))
        }
    }
}

/// Runs a scenario of `workbench`, and expects that it ends without differences.
///
/// - Returns: Its output.
@discardableResult
func runWorkbench(_ arguments: [String], within: Duration) async throws -> String {
    let name = arguments.first ?? "workbench"
    let folder = try ClusterFolder(name)
    let test = try ClusterProcess(
        ClusterProcess.Command(
            executable: LocalCluster.executables + "/workbench", arguments: arguments,
            environment: ["PATH": "/usr/bin:/bin", ClusterFolder.mark: folder.markValue],
            logPath: folder.logPath(name)))
    defer { test.kill9() }
    try await test.expectNoDifferences(within: within)
    return test.logTail(bytesMax: 100_000)
}

extension ClusterProcess {
    func expectNoDifferences(within: Duration = .seconds(600)) async throws {
        try await eventually("the demo ends", within: within) { isRunning ? logTail(bytesMax: 500) : nil }
        let demoLog = logTail(bytesMax: 400_000)
        // Differences are printed between the services' logs; the beginning of a failure's message is what is read.
        let words = demoLog.split(separator: "\n").filter { !$0.hasPrefix("{\"time\"") }.suffix(40)
        let excerptOfLog = words.joined(separator: "\n") + "\nthe end of it:\n" + demoLog.suffix(20_000)
        let isWell = demoLog.contains("verdict: no differences")
        #expect(end == .exited(status: 0), "\(excerptOfLog)")
        #expect(isWell, "\(excerptOfLog)")
    }
}
