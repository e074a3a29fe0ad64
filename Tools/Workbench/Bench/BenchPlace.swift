import FoundationEssentials
import Glibc
import Kafka
import LocalCluster
import Model
import ObjectStore
import Postgres

/// A database and a broker of a benchmark's own.
struct BenchPlace {
    let conninfo: String
    let brokers: String
    let brokerName: String
    private let broker: pid_t?
    private let admin: String
    private let databaseName: String

    struct Missing: Error, CustomStringConvertible { let description: String }

    init(_ options: BenchOptions, topics: [String: Int]) throws {
        admin = options.database
        databaseName = "fieldpost_bench_\(getpid())"
        var connection = try Connection(admin)
        try connection.runScript("DROP DATABASE IF EXISTS \(databaseName)")
        try connection.runScript("CREATE DATABASE \(databaseName)")
        conninfo = Self.with(database: databaseName, in: admin)
        var database = try Connection(conninfo)
        for file in try Self.files(in: options.schema) { try database.runScript(file) }
        try database.run("INSERT INTO realm.migration (number, name, checksum) VALUES (\(Schema.version), 'bench', '')")
        if let given = options.brokers {
            brokers = given
            brokerName = "the broker at \(given)"
            broker = nil
            let admin = try Admin(brokers: given)
            _ = try admin.createTopics(topics.map { NewTopic(name: $0.key, partitions: Int32($0.value)) })
        } else {
            let port = try Ports.free()
            brokers = "127.0.0.1:\(port)"
            let roundTrip = options.brokerRoundTrip
            brokerName =
                "librdkafka's mock cluster (the sandbox broker, a process of its own"
                + (roundTrip > 0 ? ", \(roundTrip) ms away)" : ")")
            broker = try Self.startBroker(port: port, topics: topics, roundTrip: roundTrip)
            try Self.waitForBroker(brokers)
        }
    }

    /// Ends the broker and drops the database.
    func end() {
        if let broker { kill(broker, SIGKILL) }
        guard var connection = try? Connection(admin) else { return }
        try? connection.runScript("DROP DATABASE IF EXISTS \(databaseName) WITH (FORCE)")
    }

    private static func with(database: String, in conninfo: String) -> String {
        // The last of two equal keywords counts; in a URI the path is replaced.
        guard conninfo.contains("://") else { return conninfo + " dbname=\(database)" }
        let parts = conninfo.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let query = parts.last?.split(separator: "?", maxSplits: 1).dropFirst().first.map { "?\($0)" } ?? ""
        return parts.prefix(3).joined(separator: "/") + "/" + database + query
    }

    private static func files(in folder: String) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".sql") }.sorted()
        return try names.map { name in
            guard let data = FileManager.default.contents(atPath: "\(folder)/\(name)") else {
                throw Missing(description: "\(folder)/\(name) cannot be read")
            }
            return String(decoding: data, as: UTF8.self)
        }
    }

    private static func startBroker(port: Int, topics: [String: Int], roundTrip: Int) throws -> pid_t {
        var words = ["\(LocalCluster.executables)/sandbox", "broker"]
        words += ["--port", String(port), "--round-trip", String(roundTrip)]
        for (name, count) in topics { words += ["--topic", "\(name):\(count)"] }
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) }
        unsafe arguments.append(nil)
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var process = pid_t()
        let status = unsafe posix_spawn(&process, words[0], nil, nil, &arguments, environ)
        guard status == 0 else { throw Missing(description: "\(words[0]) cannot be started (error \(status))") }
        return process
    }

    private static func waitForBroker(_ brokers: String) throws {
        let admin = try Admin(brokers: brokers)
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            if (try? admin.metadata()) != nil { return }
            poll(nil, 0, 20)
        }
        throw Missing(description: "the sandbox broker did not start")
    }
}

/// Processor time in seconds, from /proc.
enum CPUTime {
    /// Of PostgreSQL's backends for a database.
    static func backends(on connection: inout Connection) throws -> Double {
        let rows = try connection.run(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        return try rows.decode(Int32.self).map { ofProcess(String($0)) }.reduce(0, +)
    }

    /// Of a process and its children, those that have ended too.
    static func ofFamily(_ process: pid_t) -> Double {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        // Of a family only the first waits for others.
        let children = names.filter { name in
            guard pid_t(name) != nil, let fields = fields(name), fields.count > 1 else { return false }
            return fields[1] == "\(process)"
        }
        return children.map { ofProcess($0) }.reduce(ofProcess("\(process)", ended: true), +)
    }

    private static func ofProcess(_ process: String, ended: Bool = false) -> Double {
        // 14 and 15 are utime and stime, 16 and 17 those of children that were waited for.
        guard let fields = fields(process), fields.count > 14 else { return 0 }
        let ticks = fields[11..<(ended ? 15 : 13)].compactMap { Double($0) }.reduce(0, +)
        return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The fields of a process's `stat`, from the third on: its state, its parent, …
    private static func fields(_ process: String) -> [Substring]? {
        guard let data = FileManager.default.contents(atPath: "/proc/\(process)/stat") else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        // The name in parentheses may hold anything; the fields are counted after it.
        guard let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }
}
