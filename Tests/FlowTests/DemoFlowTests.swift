import Foundation
import Suite
import Testing

extension FlowTests {
    /// The main job: devices, gateway, relay, submitter and SAP, judged by `fieldpost demo`.
    struct DemoFlowTests {
        @Test(.timeLimit(.minutes(3))) func devicesRealmsAndBackEndAgree() async throws {
            try await withSuite("demo") { suite in
                let demo = try suite.startDemo(["--people", "6"])
                try await demo.expectNoDifferences(within: .seconds(120))
            }
        }

        /// 5 % 503, 2 % 429, 2 % of the answers lost after the write, 1 % committed late, 20 ms latency.
        @Test(.timeLimit(.minutes(3))) func theyAgreeWhileTheBackEndMisbehaves() async throws {
            try await withSuite("chaos") { suite in
                let demo = try suite.startDemo(["--people", "6", "--chaos"])
                try await demo.expectNoDifferences(within: .seconds(150))
            }
        }

        /// With `FLOW_DATA` the real time sheets are used; `FLOW_KILLS` and `FLOW_SEED` say how often and when.
        @Test(.timeLimit(.minutes(60))) func theyAgreeWhateverIsKilled() async throws {
            let variables = ProcessInfo.processInfo.environment
            let seed = Killer.printedSeed("kills with devices", given: variables["FLOW_SEED"])
            let count = variables["FLOW_KILLS"].flatMap { Int($0) } ?? 20
            let size = variables["FLOW_DATA"].map { ["--data", $0] } ?? ["--people", "6", "--seed", "\(seed)"]
            try await withSuite("kills") { suite in
                let demo = try suite.startDemo(size)
                let killer = Killer(
                    suite: suite, parts: [.relay, .gateway, .initializer, .submitter, .database, .broker], seed: seed,
                    pause: .milliseconds(700))
                try await killer.kill(count)
                try await demo.expectNoDifferences(within: .seconds(variables["FLOW_DATA"] == nil ? 150 : 3_000))
            }
        }
    }
}

extension Suite {
    func startDemo(_ arguments: [String]) throws -> SuiteProcess {
        try startCommand(
            [
                "demo", "--gateway", gatewayURL, "--identity", identityURL, "--sap", sapURL, "--database", conninfo,
            ] + arguments, log: "demo")
    }
}

extension SuiteProcess {
    func expectNoDifferences(within: Duration) async throws {
        try await eventually("the demo ends", within: within) { isRunning ? logTail(bytesMax: 500) : nil }
        let said = logTail(bytesMax: 20_000)
        #expect(end == .exited(status: 0), "\(said)")
        #expect(said.contains("verdict: no differences"), "\(said)")
    }
}
