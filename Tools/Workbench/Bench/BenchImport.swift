import ArgumentParser
import Essentials
import Foundation
import LocalCluster
import Model
import Postgres

/// `fieldpost import objects`, compared with `COPY` of the same rows.
struct BenchImport: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Compare fieldpost import objects with COPY of the same rows.",
        discussion: """
            The file has 70 % tasks, 30 % notes of 1,000 people, and 1,000 teams. COPY reads the rows of objects \
            and changes from files of the server into empty tables of the same shape.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of lines.") var lines = 200_000

    func validate() throws { try BenchOptions.check(lines, in: 10_000...10_000_000, "--lines") }

    static let targets = [
        BenchTarget(name: "import / COPY", figure: "import", reference: "COPY", limit: .atLeast(0.5)),
        BenchTarget(name: "memory", figure: "memory", statistic: .maximum, limit: .atMost(64)),
    ]

    private static let importMax = Duration.seconds(1_200)

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration() }

    func setUp(_ installation: BenchInstallation) async throws -> BenchLines {
        try await installation.pool.run { connection in
            try connection.runScript(
                """
                CREATE SCHEMA bench;
                CREATE TABLE bench.object (LIKE store.object INCLUDING ALL);
                CREATE TABLE bench.change (LIKE store.change INCLUDING ALL);
                """)
        }
        return try BenchLines(count: lines, path: installation.cluster.folder.logPath("lines"))
    }

    func measure(
        _ lines: BenchLines, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try await installation.pool.run { connection in
            try connection.runScript("TRUNCATE store.object, store.change, bench.object, bench.change")
            try connection.runScript("CHECKPOINT")
        }
        let start = ContinuousClock.now
        let databaseStart = installation.processorTime(of: .database)
        let process = try installation.cluster.startCommand(
            ["import", "objects", lines.path, "--environment", BenchInstallation.environmentName, "--json"],
            log: "import")
        defer { process.kill9() }
        var (memory, own) = (0.0, 0.0)
        try await waitUntil("the end of the import", within: Self.importMax, interval: .milliseconds(10)) {
            memory = max(memory, ProcessUsage.value("VmHWM", of: process.id) ?? 0)
            own = max(own, ProcessUsage.processorTime(of: process.id))
            return !process.isRunning
        }
        let seconds = (ContinuousClock.now - start).inSeconds
        guard process.end == .exited(status: 0) else { throw ClusterFailure(process.logTail()) }
        let count = Double(lines.count)
        report.add("import", "lines/s", count / seconds)
        report.add("processor time", "µs/line", own / count * 1e6)
        report.add(
            "PostgreSQL's processor time", "µs/line",
            (installation.processorTime(of: .database) - databaseStart) / count * 1e6)
        report.add("memory", "MB", memory / 1_024)
        report.add("COPY", "lines/s", count / (try await copy(on: installation)).inSeconds)
    }

    /// Writes what the import wrote to files, and measures `COPY` of these into empty tables.
    private func copy(on installation: BenchInstallation) async throws -> Duration {
        try await installation.pool.run { connection in
            let folder = try connection.run("SHOW data_directory")[0].decode(String.self)
            try connection.runScript(
                """
                COPY (SELECT * FROM store.object ORDER BY position) TO '\(folder)/bench-objects';
                COPY (SELECT * FROM store.change ORDER BY position) TO '\(folder)/bench-changes'
                """)
            try connection.runScript("CHECKPOINT")
            let start = ContinuousClock.now
            try connection.runScript(
                """
                COPY bench.object FROM '\(folder)/bench-objects'; COPY bench.change FROM '\(folder)/bench-changes'
                """)
            return ContinuousClock.now - start
        }
    }
}

/// A file of objects for `fieldpost import objects`.
struct BenchLines {
    let count: Int
    let path: String

    private static let peopleCount = 1_000
    private static let teamCount = 1_000
    private static let pageBytes = 1 << 20

    /// Writes the file.
    init(count: Int, path: String) throws {
        (self.count, self.path) = (count, path)
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        guard let file = FileHandle(forWritingAtPath: path) else { throw ClusterFailure("\(path) cannot be written") }
        defer { try? file.close() }
        var random = SplitMix64(seed: 1)
        let teams = (0..<Self.teamCount).map { _ in random.id().text }
        var text = ""
        for index in 0..<count {
            text += Self.line(index, teams, id: random.id().text) + "\n"
            guard text.utf8.count > Self.pageBytes || index == count - 1 else { continue }
            try file.write(contentsOf: Data(text.utf8))
            text = ""
        }
    }

    private static func line(_ index: Int, _ teams: [String], id: String) -> String {
        if index < teams.count {
            return #"{"realm":"/common","kind":"Team","id":"\#(teams[index])","fields":{"name":"Team \#(index)"}}"#
        }
        // Of ten lines, three are notes.
        let (ten, digit) = (index / 10, index % 10)
        if digit < 3 {
            return """
                {"realm":"/users/p\((3 * ten + digit) % peopleCount)@bench.example","kind":"Note","id":"\(id)",\
                "fields":{"title":"Note \(index)","body":"Pump 4 lost pressure at noon; the seal was replaced, see the \
                photograph. To be checked again next week.","isTask":true,"isDone":\(index % 2 == 0)}}
                """
        }
        let fields = BenchTasks.fields(number: index, team: teams[(7 * ten + digit) % teams.count])
        return #"{"realm":"/manager","kind":"FieldTask","id":"\#(id)","fields":\#(fields)}"#
    }
}
