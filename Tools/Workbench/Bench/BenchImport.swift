import ArgumentParser
import Essentials
import Foundation
import LocalCluster
import Model
import Postgres

/// Many lines of JSON into realms, against `COPY` of the rows that they become.
struct BenchImport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "fieldpost import objects, against COPY of the same rows, and killed half-way.",
        discussion: """
            The lines are 70 % tasks, 30 % notes of 1,000 people, and 1,000 teams. COPY reads the rows of objects and \
            changes from files into empty tables of the same shape, within the server: its user must be allowed to. \
            At the end an import is killed half-way and run again: nothing is missing, and once more changes nothing.
            """)

    @Option(help: "How many lines.")
    var lines = 1_000_000
    @OptionGroup var options: BenchOptions

    private static let people = 1_000
    private static let teams = 1_000
    private static let importMax = Duration.seconds(1_200)

    func validate() throws {
        guard (10_000...10_000_000).contains(lines) else { throw ValidationError("--lines is 10000…10000000") }
    }

    func run() async throws {
        let place = try BenchPlace(options, topics: [:])
        defer { place.end() }
        let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-bench-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        // PostgreSQL, whose user is another one, writes and reads there.
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        var connection = try Connection(place.conninfo)
        try connection.run("INSERT INTO realm.environment (name) VALUES ('bench')")
        try connection.runScript(Self.tables)
        let (all, few) = (folder.path + "/lines", folder.path + "/few")
        print("writing \(lines) lines (\(try Self.write(lines, to: all) / 1_000_000) MB)")
        _ = try Self.write(lines / 10, to: few)
        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            for (name, file) in [("a tenth", few), ("all", all)] {
                try Self.empty(&connection)
                let found = try await measure(file, place)
                if file == all {
                    figures.add("import", "lines/s", Double(lines) / found.time.inSeconds)
                    figures.add("import's own CPU", "s", found.ownSeconds)
                }
                figures.add("import, memory at the most, \(name)", "MB", found.megabytes)
            }
            let time = try Self.copy(folder.path, &connection)
            figures.add("COPY", "lines/s", Double(lines) / time.inSeconds)
            print("  \(figures.latest)")
        }
        print(figures.table(title: "import, medians of \(options.rounds) rounds"))
        print(BenchFigures.ratio("import / COPY", figures.median("import") / figures.median("COPY"), aim: 0.5))
        let memory = "import, memory at the most, "
        print(
            BenchFigures.ratio(
                "memory, all / a tenth", figures.median(memory + "all") / figures.median(memory + "a tenth"), aim: 1.1,
                isAtMost: true))
        try await kill(all, place, &connection)
    }

    // MARK: The lines

    /// - Returns: How many bytes there are.
    private static func write(_ count: Int, to path: String) throws -> Int {
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        guard let file = FileHandle(forWritingAtPath: path) else {
            throw BenchPlace.Missing(description: "\(path) cannot be written")
        }
        defer { try? file.close() }
        var random = SplitMix64(seed: 1)
        let ids = (0..<teams).map { _ in random.id().text }
        var (text, bytes) = ("", 0)
        for index in 0..<count {
            text += line(index, ids, id: random.id().text) + "\n"
            guard text.utf8.count > 1 << 20 || index == count - 1 else { continue }
            bytes += text.utf8.count
            try file.write(contentsOf: Data(text.utf8))
            text = ""
        }
        return bytes
    }

    private static func line(_ index: Int, _ teams: [String], id: String) -> String {
        if index < teams.count {
            return #"{"realm":"/common","kind":"Team","id":"\#(teams[index])","fields":{"name":"Team \#(index)"}}"#
        }
        if index % 10 < 3 {
            return #"{"realm":"/users/person\#(index % people)@bench.example","kind":"Note","id":"\#(id)","fields":{"#
                + #""title":"Note \#(index)","body":"Pump 4 lost pressure at noon; the seal was replaced, see the "#
                + #"photograph. To be looked at again next week.","isTask":true,"isDone":\#(index % 2 == 0)}}"#
        }
        return #"{"realm":"/manager","kind":"FieldTask","id":"\#(id)","fields":{"title":"Bulky items \#(index)","#
            + #""taskDescription":"Two couches and a fridge in front of the house","creationDate":"#
            + #""2026-03-30T09:40:00.000Z","dueDate":"2026-04-02T09:40:00.000Z","place":{"latitude":34.05,"#
            + #""longitude":-118.25,"street":"1 A ST","postalCode":"90026"},"isCompleted":false,"#
            + #""team":"\#(teams[index % teams.count])"}}"#
    }

    // MARK: Measuring

    private static let tables = """
        CREATE SCHEMA bench;
        CREATE TABLE bench.object (LIKE store.object INCLUDING ALL);
        CREATE TABLE bench.change (LIKE store.change INCLUDING ALL);
        ALTER TABLE bench.object SET (fillfactor = 60);
        """

    private static func empty(_ connection: inout Connection) throws {
        try connection.runScript(
            """
            TRUNCATE store.object, store.change, bench.object, bench.change;
            UPDATE realm.environment SET position = 0
            """)
        try connection.runScript("CHECKPOINT")
    }

    private func start(_ file: String, _ place: BenchPlace) throws -> ClusterProcess {
        try ClusterProcess(
            ClusterProcess.Command(
                executable: "\(LocalCluster.executables)/fieldpost",
                arguments: ["import", "objects", file, "--environment", "bench", "--json"],
                environment: ["PATH": "/usr/bin:/bin", "FIELDPOST_DATABASE_URL": place.conninfo],
                logPath: file + ".log"))
    }

    private func measure(
        _ file: String, _ place: BenchPlace
    ) async throws -> (time: Duration, ownSeconds: Double, megabytes: Double) {
        let start = ContinuousClock.now
        let process = try self.start(file, place)
        defer { process.kill9() }
        var (kilobytes, seconds) = (0.0, 0.0)
        while process.isRunning, ContinuousClock.now - start < Self.importMax {
            kilobytes = max(kilobytes, ProcessMemory.kilobytes("VmHWM", of: process.id) ?? 0)
            seconds = max(seconds, CPUTime.ofFamily(process.id))
            try await Task.sleep(for: .milliseconds(20))
        }
        let time = ContinuousClock.now - start
        guard process.end == .exited(status: 0) else {
            throw BenchPlace.Missing(description: "the import did not end well: \(process.logTail())")
        }
        return (time, seconds, kilobytes / 1_024)
    }

    /// What the last import wrote goes to files, and from there into empty tables: the latter is measured.
    private static func copy(_ folder: String, _ connection: inout Connection) throws -> Duration {
        try connection.runScript(
            """
            COPY (SELECT * FROM store.object ORDER BY position) TO '\(folder)/objects';
            COPY (SELECT * FROM store.change ORDER BY position) TO '\(folder)/changes'
            """)
        try connection.runScript("CHECKPOINT")
        let start = ContinuousClock.now
        try connection.runScript(
            "COPY bench.object FROM '\(folder)/objects'; COPY bench.change FROM '\(folder)/changes'")
        return ContinuousClock.now - start
    }

    // MARK: Killed

    private func kill(_ file: String, _ place: BenchPlace, _ connection: inout Connection) async throws {
        try Self.empty(&connection)
        let process = try start(file, place)
        defer { process.kill9() }
        while try Self.position(&connection) < lines / 2 {
            guard process.isRunning else { throw BenchPlace.Missing(description: process.logTail()) }
            try await Task.sleep(for: .milliseconds(50))
        }
        process.kill9()
        _ = process.waitForEnd()
        let atKill = try Self.position(&connection)
        let rest = try await measure(file, place)
        let atEnd = try Self.position(&connection)
        let again = try await measure(file, place)
        let isSame = try Self.position(&connection) == atEnd
        let times = [rest, again].map { BenchFigures.text($0.time.inSeconds) }
        print("  killed after \(atKill) objects; the rest took \(times[0]) s: \(atEnd) of \(lines)")
        print("  once more: \(times[1]) s, \(isSame ? "no position used" : "WRITES AGAIN")")
        guard atEnd == lines, isSame else { throw ExitCode.failure }
    }

    private static func position(_ connection: inout Connection) throws -> Int {
        Int(try connection.run("SELECT position FROM realm.environment")[0].decode(Int64.self))
    }
}
