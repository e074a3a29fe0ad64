import Foundation
import LocalCluster
import TestSupport
import Testing

/// What somebody meets who has just run `deploy/up` and sourced its environment.
@Suite(.ownThreads) struct FirstStepsTests {
    /// Called by its name from somewhere else, a command finds the executables beside its own.
    @Test func aBenchmarkCanBeCalledFromThePath() throws {
        try withFolder { folder in
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", "exec workbench bench relay --rounds 1 --objects 500 >said 2>&1"]
            process.currentDirectoryURL = folder
            process.environment = [
                "PATH": LocalCluster.executables + ":/usr/bin:/bin",
                "FIELDPOST_DATABASE_URL": try TestServer.shared.makeDatabase(),
            ]
            process.standardInput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            let said = try String(contentsOf: folder.appendingPathComponent("said"), encoding: .utf8)
            #expect(process.terminationStatus == 0, "\(said)")
        }
    }

    /// Each part that does not answer is named, with the address that was tried, long before the demo's time is up.
    @Test func theDemoSaysWhatDoesNotAnswer() throws {
        let (gateway, identity, sap) = (try Ports.free(), try Ports.free(), try Ports.free())
        let start = ContinuousClock.now
        let answer = try workbench(
            "demo", "--sap", "http://127.0.0.1:\(sap)/",
            environment: [
                "FIELDPOST_DATABASE_URL": "host=127.0.0.1 port=1", "SAP_URL": "http://not-this-one",
                "GATEWAY_URL": "http://127.0.0.1:\(gateway)", "IDENTITY_URL": "http://127.0.0.1:\(identity)",
            ])
        let passed = ContinuousClock.now - start
        #expect(answer.status != 0 && passed < patienceMax)
        for port in [gateway, identity, sap] {
            #expect(answer.errors.contains("http://127.0.0.1:\(port) does not answer"), "\(answer.errors)")
        }
    }
}
