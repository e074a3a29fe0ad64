import Foundation
import LocalCluster
import Model
import Synchronization
import TestSupport
import Testing

/// A process that shows consumer groups' lag, and a thread that follows what it shows.
struct ObservedProgram: Sendable {
    let name: String
    let process: ClusterProcess
    private let port: Int
    private let record: CycleRecord
    private let observer: BackgroundThread

    /// `lag-monitor`, which begins a collection cycle one second after the end of the last one.
    init(monitorIn folder: ClusterFolder, port: Int, database: String, brokers: String) throws {
        let record = CycleRecord()
        let process = try Self.start(
            "lag-monitor", [],
            [
                "FIELDPOST_DATABASE_URL": database, "FIELDPOST_KAFKA_BROKERS": brokers,
                "FIELDPOST_ADMIN_PORT": "\(port)", "FIELDPOST_MONITOR_INTERVAL": "1s",
            ], in: folder, output: folder.logPath("lag-monitor"))
        (name, self.process, self.port, self.record) = ("lag-monitor", process, port, record)
        observer = BackgroundThread {
            // The duration of a cycle is shown for a second at least.
            while !record.isOver {
                if let page = try? Self.response("/metrics", from: port) {
                    record.note(MetricsFigures(String(decoding: page.body, as: UTF8.self)))
                }
                poll(nil, 0, 400)
            }
        }
    }

    /// `fieldpost lag --watch`.
    ///
    /// - Parameter rowCount: The number of rows of a whole table.
    init(watchIn folder: ClusterFolder, brokers: String, rowCount: Int) throws {
        let record = CycleRecord()
        // The output of an hour is read as it comes, and not kept.
        let pipe = folder.path + "/lag-watch"
        try #require(unsafe mkfifo(pipe, 0o600) == 0)
        let reader = unsafe open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        process = try Self.start(
            "fieldpost", ["lag", "--watch", "--partitions", "--limit", "\(rowCount)"],
            ["FIELDPOST_KAFKA_BROKERS": brokers], in: folder, output: pipe)
        (name, port, self.record) = ("fieldpost lag --watch", 0, record)
        observer = BackgroundThread {
            defer { close(reader) }
            var tables = TableReader(rowCount: rowCount)
            var page = [UInt8](repeating: 0, count: 65_536)
            while !record.isOver {
                let count = unsafe read(reader, &page, page.count)
                if count > 0 {
                    tables.take(page[..<count], record)
                } else {
                    var descriptor = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
                    unsafe poll(&descriptor, 1, 200)
                }
            }
        }
    }

    private static func start(
        _ program: String, _ arguments: [String], _ environment: [String: String], in folder: ClusterFolder,
        output: String
    ) throws -> ClusterProcess {
        // The mock cluster responds to a fetch that finds nothing only after the time that it may wait.
        let common = [ClusterFolder.mark: folder.markValue, "FIELDPOST_KAFKA_FETCH_WAIT_MAX_MS": "50"]
        return try ClusterProcess(
            ClusterProcess.Command(
                executable: LocalCluster.executables + "/" + program, arguments: arguments,
                environment: common.merging(environment) { $1 }, logPath: output))
    }

    var cycles: Cycles { record.cycles }

    /// The end of its log, or the errors of a program that writes tables.
    var output: String { port == 0 ? record.otherLines.joined(separator: "\n") : process.logTail() }

    func response(_ path: String) throws -> RawResponse { try Self.response(path, from: port) }

    private static func response(_ path: String, from port: Int) throws -> RawResponse {
        var connection = try RawConnection(port: port)
        connection.send("GET \(path) HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        return try connection.response(to: "GET")
    }

    func end() {
        process.kill9()
        record.end()
        try? observer.wait()
    }
}

/// The collection cycles of a program.
struct Cycles: CustomStringConvertible {
    var count = 0
    var wholeCount = 0
    var longest = Duration.zero
    /// Whether the latest one saw everything.
    var isWhole = false
    /// The lag of ``Topics/entry`` in the latest one.
    var lag = -1

    var description: String {
        "\(count) cycles, \(wholeCount) whole, longest \(longest), lag \(lag)\(isWhole ? "" : ", not whole now")"
    }
}

/// The size of a process.
struct ProcessSize: CustomStringConvertible {
    let threads: Int
    let megabytes: Int

    init(of process: pid_t) throws {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        func value(_ name: String) throws -> Int {
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name + ":") })
            return try #require(line.split { $0 == " " || $0 == "\t" }.dropFirst().first.flatMap { Int($0) })
        }
        (threads, megabytes) = (try value("Threads"), try value("VmRSS") / 1024)
    }

    var description: String { "\(threads) threads and \(megabytes) MB" }
}

/// Records of an observer, read by a test.
private final class CycleRecord: Sendable {
    private struct State {
        var cycles = Cycles()
        var round = ""
        var tableAt: ContinuousClock.Instant?
        var otherLines: [String] = []
        var isOver = false
    }

    private static let otherLinesMax = 20
    /// The pause of `fieldpost lag --watch` between two tables.
    private static let watchInterval = Duration.seconds(2)

    private let state = Mutex(State())

    var cycles: Cycles { state.withLock(\.cycles) }
    var otherLines: [String] { state.withLock(\.otherLines) }
    var isOver: Bool { state.withLock(\.isOver) }
    func end() { state.withLock { $0.isOver = true } }

    func note(_ figures: MetricsFigures) {
        state.withLock { state in
            if figures.round == state.round { return }
            state.round = figures.round
            Self.note(.seconds(Double(figures.round) ?? 0), figures.problems == "0", figures.lag, &state.cycles)
        }
    }

    func note(lag: Int, isWhole: Bool) {
        state.withLock { state in
            let now = ContinuousClock.now
            let time = state.tableAt.map { now - $0 - Self.watchInterval } ?? .zero
            state.tableAt = now
            Self.note(time, isWhole, lag, &state.cycles)
        }
    }

    func note(line: String) {
        state.withLock { state in
            state.otherLines = state.otherLines.suffix(Self.otherLinesMax - 1) + [line]
        }
    }

    private static func note(_ time: Duration, _ isWhole: Bool, _ lag: Int, _ cycles: inout Cycles) {
        cycles.count += 1
        cycles.wholeCount += isWhole ? 1 : 0
        cycles.longest = max(cycles.longest, time)
        (cycles.isWhole, cycles.lag) = (isWhole, lag)
    }
}

/// The metrics of `lag-monitor`.
private struct MetricsFigures {
    /// The duration of the latest cycle.
    private(set) var round = ""
    private(set) var problems = ""
    private(set) var lag = -1

    init(_ page: String) {
        for line in page.split(separator: "\n") where !line.hasPrefix("kafka_partition") && !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            let value = line[line.index(after: space)...]
            switch line.prefix(while: { $0 != "{" && $0 != " " }) {
            case "fieldpost_monitor_cycle_seconds": round = String(value)
            case "fieldpost_monitor_problems": problems = String(value)
            case "kafka_consumergroup_group_topic_sum_lag" where line.contains("topic=\"\(Topics.entry.name)\""):
                lag = Int(value) ?? -1
            default: break
            }
        }
    }
}

/// Reads the tables of `fieldpost lag --watch`.
private struct TableReader {
    let rowCount: Int
    private var line: [UInt8] = []
    private var rows = 0
    private var unknownCount = 0
    private var lag = 0

    init(rowCount: Int) { self.rowCount = rowCount }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ record: CycleRecord) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                take(String(decoding: line, as: UTF8.self), record)
                line.removeAll(keepingCapacity: true)
            } else {
                line.append(byte)
            }
        }
    }

    private mutating func take(_ line: String, _ record: CycleRecord) {
        // TOPIC, PARTITION, GROUP, COMMITTED, END, LAG, …
        let cells = line.split(separator: " ")
        if cells.first == "TOPIC" {
            if rows > 0 { record.note(lag: lag, isWhole: rows == rowCount && unknownCount == 0) }
            (rows, unknownCount, lag) = (0, 0, 0)
        } else if cells.count > 5, cells[0].hasSuffix(".events") {
            rows += 1
            if cells.contains("unknown") { unknownCount += 1 }
            if cells[0] == Topics.entry.name { lag += Int(cells[5]) ?? 0 }
        } else {
            record.note(line: line)
        }
    }
}
