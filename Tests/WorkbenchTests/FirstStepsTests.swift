import Foundation
import LocalCluster
import TestSupport
import Testing

/// The first commands after `deploy/up`.
@Suite(.ownThreads) struct FirstStepsTests {
    /// A command found by `PATH` uses the executables in its own folder.
    @Test func benchmarkRunsWhenFoundByPath() throws {
        try withFolder { folder in
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", "exec workbench bench relay --runs 1 --objects 500 >output 2>&1"]
            process.currentDirectoryURL = folder
            process.environment = [
                "PATH": LocalCluster.executables + ":/usr/bin:/bin",
                "TMPDIR": FileManager.default.temporaryDirectory.path,
            ]
            process.standardInput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            let output = try String(contentsOf: folder.appendingPathComponent("output"), encoding: .utf8)
            #expect(process.terminationStatus == 0, "\(output)")
        }
    }

    /// Each unavailable component is reported with its address, long before the demo's time limit.
    @Test func demoReportsUnavailableComponents() throws {
        let (gateway, identity, sap) = (try Ports.free(), try Ports.free(), try Ports.free())
        let start = ContinuousClock.now
        let response = try workbench(
            "demo", "--sap", "http://127.0.0.1:\(sap)/",
            environment: [
                "FIELDPOST_DATABASE_URL": "host=127.0.0.1 port=1", "SAP_URL": "http://not-this-one",
                "GATEWAY_URL": "http://127.0.0.1:\(gateway)", "IDENTITY_URL": "http://127.0.0.1:\(identity)",
            ])
        let passed = ContinuousClock.now - start
        #expect(response.status != 0 && passed < patienceMax)
        for port in [gateway, identity, sap] {
            #expect(response.errors.contains("http://127.0.0.1:\(port) does not answer"), "\(response.errors)")
        }
    }
}
