import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// Swift's runtime would write a backtrace first, for minutes, while the process and its ports stay.
    @Test(.timeLimit(.minutes(20))) func aCrashFreesPortsAtOnce() async throws {
        var options = LocalCluster.Options.withoutGateway
        options.services = [.relay]
        try await withCluster("crash", options) { cluster in
            for part in [LocalCluster.Part.broker, .relay] {
                let process = try #require(cluster.process(part))
                process.signal(SIGABRT)
                let end = await onOwnThread { process.waitForEnd(within: .seconds(240)) }
                #expect(end == .killed(signal: SIGABRT))
                #expect(!process.logTail().contains("Backtrac"), "\(process.logTail())")
                #expect(killpg(process.id, 0) == -1 && errno == ESRCH)
                try cluster.start(part)
                try await cluster.waitUntilReady(part)
            }
        }
    }
}
