import Foundation
import TestSupport
import Testing

@testable import LocalCluster
@testable import Workbench

/// The emulator of Kafka needs no settings of its own: services in trials have the same as those of a real broker.
@Suite(.ownThreads) struct EmulatorSettingsTests {
    @Test func partsOfALocalClusterHaveOnlyTheBrokersAddress() throws {
        let options = LocalCluster.Options()
        let home = try ClusterHome(temporary: "settings", services: options.services)
        let server = try ClusterServer(in: home.folder)
        let cluster = LocalCluster(home, server, conninfo: server.conninfo("fieldpost"), options)
        for part in options.services {
            let names = cluster.command(part, of: "/").environment.keys.filter { $0.hasPrefix("FIELDPOST_KAFKA_") }
            #expect(names == ["FIELDPOST_KAFKA_BROKERS"], "\(part.name)")
        }
    }

    @Test func environmentFileOfUpHasOnlyTheBrokersAddress() throws {
        let folder = try ClusterFolder("up-state")
        let state = try UpState(folder: folder.path + "/.fieldpost")
        try state.writeEnvironment(executables: "/usr/bin")
        let text = try String(contentsOfFile: state.path + "/environment", encoding: .utf8)
        let lines = text.split(separator: "\n").filter { $0.contains("FIELDPOST_KAFKA_") }
        #expect(lines.count == 1 && lines[0].hasPrefix("export FIELDPOST_KAFKA_BROKERS="), "\(lines)")
    }
}
