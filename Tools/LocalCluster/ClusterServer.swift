import Foundation
import Postgres
import Synchronization

/// A PostgreSQL server of the cluster's own, on a socket in its folder. It can be killed and started again: its data
/// stays.
///
/// Its own durability is off (`fsync`), which makes it quick and is safe here: what a killed process has written is in
/// the kernel's hands, and survives as long as the machine does. It proves nothing about a machine that loses power.
package final class ClusterServer: Sendable {
    /// The folder of the data and of the socket, which is also the host name for libpq.
    package let folder: String
    private let binaries: String
    private let options: [String: String]
    private let home: ClusterFolder
    /// `nil`: it listens on a socket, and trusts every client.
    private let password: String?
    private let process = Mutex<ClusterProcess?>(nil)

    /// The user that owns the databases.
    package static let user = "fieldpost"
    private let port: Int
    private static let startMax = Duration.seconds(240)

    /// Creates the server's files in `folder`, which must not exist; `start` starts it.
    ///
    /// - Parameters:
    ///   - home: The folder of the cluster.
    ///   - options: Additional settings of PostgreSQL.
    package init(in home: ClusterFolder, options: [String: String] = [:]) throws {
        (folder, self.home, password) = (home.path + "/postgres", home, nil)
        binaries = try Self.findBinaries()
        port = options["port"].flatMap { Int($0) } ?? 5432
        self.options = [
            "port": "\(port)", "unix_socket_directories": folder, "listen_addresses": "", "fsync": "off",
            "max_connections": "500", "shared_buffers": "128MB",
            // In files below its folder, which go with it: a server that is killed leaves other shared memory behind.
            "dynamic_shared_memory_type": "mmap",
        ].merging(options) { $1 }
        try makeFolder()
        try run("initdb", ["-D", "\(folder)/data", "-A", "trust", "-N"] + Self.encoding)
    }

    /// A server whose data stay and are safe from a machine that loses power: on a port of 127.0.0.1, with a password.
    ///
    /// Makes its files unless they are there; one that outlived its owner is stopped.
    ///
    /// - Parameters:
    ///   - folder: Where its data are, or will be; the system's user `postgres` must get there.
    ///   - home: The folder of the cluster.
    ///   - password: Of the user that owns the databases; without characters that an address would have to escape.
    package init(lasting folder: String, in home: ClusterFolder, port: Int, password: String) throws {
        (self.folder, self.home, self.port, self.password) = (folder, home, port, password)
        binaries = try Self.findBinaries()
        options = [
            "port": "\(port)", "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "fsync": "on",
            "max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "2GB",
            "log_line_prefix": "%m [%p] ", "tcp_keepalives_idle": "30",
        ]
        if FileManager.default.fileExists(atPath: folder + "/data") {
            guard FileManager.default.fileExists(atPath: folder + "/data/postmaster.pid") else { return }
            try? run("pg_ctl", ["-D", "\(folder)/data", "-m", "fast", "-w", "stop"])
        } else {
            try makeFiles(password)
        }
    }

    /// Has them in `new` first: what was begun and not finished is made again.
    private func makeFiles(_ password: String) throws {
        let (new, secret) = (folder + "/new", folder + "/password")
        try? FileManager.default.removeItem(atPath: new)
        try makeFolder()
        _ = FileManager.default.createFile(
            atPath: secret, contents: Data((password + "\n").utf8), attributes: [.posixPermissions: 0o600])
        defer { try? FileManager.default.removeItem(atPath: secret) }
        if getuid() == 0 { try runToEnd("chown", ["postgres:", secret]) }
        try run("initdb", ["-D", new, "-A", "scram-sha-256", "--pwfile=\(secret)"] + Self.encoding)
        try FileManager.default.moveItem(atPath: new, toPath: folder + "/data")
    }

    private static let encoding = ["-U", user, "-E", "UTF8", "--locale=C.UTF-8"]

    /// Makes the folder, for the user that PostgreSQL runs as.
    private func makeFolder() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        if getuid() == 0 { try runToEnd("chown", ["postgres:", folder]) }
    }

    /// Runs a program of PostgreSQL in the folder.
    private func run(_ program: String, _ arguments: [String]) throws {
        try runToEnd("env", ["-C", folder] + Self.asUser + ["\(binaries)/\(program)"] + arguments)
    }

    /// Whether the user that PostgreSQL runs as gets to a folder.
    package static func canEnter(_ folder: String) -> Bool {
        (try? runToEnd("env", asUser + ["test", "-x", folder])) != nil
    }

    /// The files of a standby of a server that runs.
    private init(of primary: borrowing ClusterServer) throws {
        (folder, home, password) = (primary.home.path + "/standby", primary.home, nil)
        (binaries, port) = (primary.binaries, primary.port)
        options = primary.options.merging(["unix_socket_directories": folder]) { $1 }
        try makeFolder()
        try run(
            "pg_basebackup",
            [
                "-h", primary.folder, "-p", "\(port)", "-U", Self.user, "-D", "\(folder)/data", "-X", "stream", "-c",
                "fast", "-R", "-N",
            ])
    }

    deinit { kill9() }

    /// Makes and starts a standby of this server, which must be running; it follows until it is cut off.
    package func makeStandby() throws -> ClusterServer {
        let standby = try ClusterServer(of: self)
        try standby.start()
        return standby
    }

    /// A connection string for one of the server's databases.
    package func conninfo(_ database: String) -> String {
        if let password {
            return "postgresql://\(Self.user):\(password)@127.0.0.1:\(port)/\(database)?\(Self.patience)"
        }
        return "host=\(folder) port=\(port) user=\(Self.user) dbname=\(database) \(Self.patience)"
    }

    /// The same for whichever of the two is a primary.
    package func conninfo(_ database: String, or standby: ClusterServer) -> String {
        "host=\(folder),\(standby.folder) port=\(port),\(standby.port) user=\(Self.user) dbname=\(database) "
            + "target_session_attrs=read-write \(Self.patience)"
    }

    /// A running server may respond late on a small machine with many others.
    private static let patience = "connect_timeout=60"

    /// Makes an empty database, unless it is there, and returns its connection string.
    package func makeDatabase(_ name: String) throws -> String {
        var admin = try connect()
        let find: Statement = "SELECT FROM pg_database WHERE datname = \(name)"
        if try admin.run(find).count == 0 { try admin.runScript("CREATE DATABASE \(name)") }
        return conninfo(name)
    }

    /// Connects, and retries while the server runs: on a slow machine one that answers may let connections time out.
    private func connect() throws -> Connection {
        let (end, pause) = (ContinuousClock.now + Self.startMax, DispatchSemaphore(value: 0))
        while true {
            do {
                return try Connection(conninfo("postgres"))
            } catch {
                guard error.isRetriable, running?.isRunning == true, .now < end else { throw error }
                _ = pause.wait(timeout: .now() + .milliseconds(100))
            }
        }
    }

    /// Starts it and blocks until it answers.
    package func start() throws {
        let process = try launch()
        let wait =
            "until \"$0\"/pg_isready -q -U \(Self.user) -h \"$1\" -p \(port); "
            + "do kill -0 $2 && sleep 0.02 || exit 1; done"
        let host = password == nil ? folder : "127.0.0.1"
        do {
            try runToEnd("sh", ["-c", wait, binaries, host, "\(process.id)"], within: Self.startMax)
        } catch {
            throw ClusterFailure("PostgreSQL does not start: \(process.logTail())")
        }
    }

    /// Starts it, and does not wait until it answers.
    @discardableResult
    package func launch() throws -> ClusterProcess {
        let settings = options.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
        let postgres = ["\(binaries)/postgres", "-D", "\(folder)/data"] + settings
        let process = try home.start(
            ClusterProcess.Command(
                executable: "/usr/bin/env", arguments: ["-C", folder] + Self.asUser + postgres,
                environment: ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", ClusterFolder.mark: home.markValue],
                logPath: home.logPath("postgres")),
            name: "postgres")
        self.process.withLock { $0 = process }
        return process
    }

    /// Its first process, which was started last.
    package var running: ClusterProcess? { process.withLock { $0 } }

    /// Ends the server and everything that belongs to it as a crash would.
    ///
    /// Each of its processes leads a session of its own, so they are found by their parent. The parent is stopped
    /// first: it must neither start others nor begin to recover.
    package func kill9() {
        guard let process = process.withLock({ $0.take() }), process.isRunning else { return }
        process.signal(SIGSTOP)
        let children = ProcessTable.children(of: process.id)
        for child in children { kill(child, SIGKILL) }
        process.kill9()
        // PostgreSQL refuses to start while one of them still holds the shared memory.
        let pause = DispatchSemaphore(value: 0)
        while children.contains(where: ProcessTable.isAlive) { _ = pause.wait(timeout: .now() + .milliseconds(2)) }
    }

    /// Sends a signal to all of its processes, its first one before it can start others.
    func signal(_ number: Int32) {
        guard let process = process.withLock({ $0 }), process.isRunning else { return }
        process.signal(number)
        for child in ProcessTable.children(of: process.id) { kill(child, number) }
    }

    // MARK: The system

    /// PostgreSQL refuses to run as root. `setpriv` becomes the program, so that its process is the server's own.
    static var asUser: [String] {
        getuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] : []
    }

    static func findBinaries() throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.compactMap({ Int($0) }).max(), newest >= 15 else {
            throw ClusterFailure("PostgreSQL 15 or later is missing in \(root) (apt-get install postgresql)")
        }
        return "\(root)/\(newest)/bin"
    }
}
