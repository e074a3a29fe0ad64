import LocalCluster
import Testing

extension FlowTests {
    /// `workbench bench poll` in small: everything is measured, and comparing again writes nothing.
    @Test(.timeLimit(.minutes(20))) func comparingAgainWritesNothing() async throws {
        var options = LocalCluster.Options.quick
        options.services = []
        try await withCluster("bench-poll-small", options) { cluster in
            let said = try await cluster.runCommand(
                ["bench", "poll", "--people", "10", "--entries", "5", "--nodes", "60", "--rounds", "1"],
                of: "workbench",
                within: .seconds(900))
            func line(_ name: String) throws -> Substring {
                let lines = said.split(separator: "\n").filter { $0.contains(name) && $0.contains(": ") }
                return try #require(lines.last, "'\(name)' is not in \(said)")
            }
            let written = try line("written when nothing changed")
            #expect(written.contains(": 0.00 ") && !written.contains("NOT MET"), "\(written)")
            for name in ["comparing / reading alone", "poller's memory, MB", "a project for one audience of"] {
                let line = try line(name)
                #expect(line.contains(where: \.isNumber) && !line.contains("nan"), "\(line)")
            }
        }
    }
}
