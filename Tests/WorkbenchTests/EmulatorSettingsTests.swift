import Foundation
import TestSupport
import Testing

@testable import LocalCluster
@testable import Workbench

/// The emulator of Kafka needs short fetches; real brokers keep Kafka's default of 500 ms.
@Suite(.ownThreads) struct EmulatorSettingsTests {
    @Test func partsOfALocalClusterFetchForAShortTime() throws {
        let options = LocalCluster.Options.quick
        let home = try ClusterHome(temporary: "settings", services: options.services)
        let server = try ClusterServer(in: home.folder)
        let cluster = LocalCluster(home, server, conninfo: server.conninfo("fieldpost"), options)
        for part in options.services {
            let variables = cluster.command(part, of: "/").environment
            #expect(variables["FIELDPOST_KAFKA_FETCH_WAIT_MAX_MS"] == "50", "\(part.name)")
        }
    }

    @Test func environmentFileOfUpFetchesForTenMilliseconds() throws {
        let folder = try ClusterFolder("up-state")
        let state = try UpState(folder: folder.path + "/.fieldpost")
        try state.writeEnvironment(executables: "/usr/bin")
        let text = try String(contentsOfFile: state.path + "/environment", encoding: .utf8)
        #expect(text.contains("\nexport FIELDPOST_KAFKA_FETCH_WAIT_MAX_MS='50'\n"), "\(text)")
    }
}
