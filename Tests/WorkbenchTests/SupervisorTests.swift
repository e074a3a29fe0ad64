import LocalCluster
import TestSupport
import Testing

@Suite(.ownThreads) struct SupervisorTests {
    @Test func eachWaitIsTwiceTheOneBefore() throws {
        let supervisor = Supervisor()
        supervisor.adopt("part", try Self.endedProcess()) { throw ClusterFailure("it cannot be started") }
        var now = ContinuousClock.now
        var waits: [Duration] = []
        for _ in 0..<7 {
            let fall = try #require(supervisor.restartWhatEnded(now: now).first)
            waits.append(fall.wait)
            now += fall.wait
        }
        #expect(waits == [1, 2, 4, 8, 16, 30, 30].map { Duration.seconds($0) })
    }

    @Test func longRunningProcessIsRestartedSoon() throws {
        let supervisor = Supervisor()
        try supervisor.start("part") { try Self.endedProcess() }
        var now = ContinuousClock.now
        var waits: [Duration] = []
        for seconds in [60, 60, 60, 62, 1] {
            now += .seconds(seconds)
            let fall = try #require(supervisor.restartWhatEnded(now: now).first)
            waits.append(fall.wait)
            now += fall.wait
            #expect(supervisor.restartWhatEnded(now: now).isEmpty, "it is restarted")
        }
        #expect(waits == [1, 2, 4, 1, 2].map { Duration.seconds($0) })
    }

    private static func endedProcess() throws -> ClusterProcess {
        let process = try ClusterProcess(ClusterProcess.Command(executable: "/bin/true", logPath: nil))
        process.waitForEnd()
        return process
    }
}
