import Foundation
import HTTPClient
import Synchronization

/// PostgreSQL's primary and standby with Patroni, the etcd that elects the primary, and a PgBouncer in front of them.
/// Each has a host of its own.
package final class DatabaseHosts: Sendable {
    package static let servers = ["pg1", "pg2"]
    package static let names = servers + ["etcd", "pgbouncer"]

    private let network: HostNetwork
    private let folder: ClusterFolder
    /// They are not restarted when they end.
    private let supervisor = Supervisor()
    private let client = Client()
    private let synchronous = Mutex(true)

    /// The data of a server are in memory, on a file system of this size.
    private static let diskBytes = 700 << 20
    private static let readyMax = Duration.seconds(120)

    /// A state of Patroni, as its REST API returns it.
    private struct State: Decodable {
        let timeline: Int?
    }

    /// The primary and its timeline.
    package struct Primary: Equatable, Sendable {
        package let host: String
        package let timeline: Int
    }

    /// Starts all hosts, and returns when the standby is synchronous.
    package init(on network: HostNetwork, in folder: ClusterFolder) async throws {
        (self.network, self.folder) = (network, folder)
        try startEtcd()
        for host in Self.servers {
            let disk = disk(of: host)
            try HostNetwork.run(
                "mkdir \(disk) && mount -t tmpfs -o size=\(Self.diskBytes),mode=700,uid=$(id -u postgres) none \(disk)")
            try Data(try patroni(host).utf8).write(to: URL(fileURLWithPath: "\(folder.path)/\(host).yml"))
            try start(host)
            try await waitUntil("\(host) is ready", within: Self.readyMax) { await self.answers(host, "/readiness") }
        }
        try await waitUntilReplicated()
        let standard = conninfo(database: "postgres")
        try runToEnd("psql", ["-qd", standard, "-c", "CREATE DATABASE fieldpost"])
        try startBouncer()
    }

    deinit {
        supervisor.kill9()
        client.shutDown()
    }

    // MARK: Connection strings

    /// The address of the database for a client that finds the primary itself.
    package var conninfo: String { conninfo(database: "fieldpost") }

    private func conninfo(database: String) -> String {
        let hosts = Self.servers.map(network.address).joined(separator: ",")
        return "host=\(hosts) user=\(ClusterServer.user) dbname=\(database) target_session_attrs=read-write"
    }

    /// The address of the database behind PgBouncer.
    package var pooledConninfo: String {
        "host=\(network.address("pgbouncer")) port=6432 user=\(ClusterServer.user) dbname=fieldpost"
    }

    // MARK: State

    /// - Returns: `nil` while there is none.
    package func primary() async -> Primary? {
        for host in Self.servers {
            guard let response = await response(host, "/primary"), response.status == 200,
                let state = try? JSONDecoder().decode(State.self, from: Data(response.body))
            else { continue }
            return state.timeline.map { Primary(host: host, timeline: $0) }
        }
        return nil
    }

    /// Waits until the standby is synchronous, or until none is.
    private func waitUntilReplicated(_ isSynchronous: Bool = true) async throws {
        try await waitUntil("the standby is \(isSynchronous ? "" : "a")synchronous", within: Self.readyMax) {
            for host in Self.servers where await self.answers(host, "/sync") { return isSynchronous }
            return !isSynchronous
        }
    }

    /// Whether a failover loses nothing.
    package var isSynchronous: Bool { synchronous.withLock { $0 } }

    /// Changes the mode of replication, and waits until it is effective.
    package func setSynchronous(_ isSynchronous: Bool) async throws {
        let body = Array("{\"synchronous_mode\": \(isSynchronous)}".utf8)
        guard let host = await primary()?.host else { throw ClusterFailure("there is no primary") }
        let url = "http://\(network.address(host)):8008/config"
        let response = try await client.send(Request("PATCH", url, body: body, totalMax: .seconds(5)))
        guard response.status == 200 else { throw ClusterFailure("Patroni returned \(response.status)") }
        try await waitUntilReplicated(isSynchronous)
        synchronous.withLock { $0 = isSynchronous }
    }

    private func answers(_ host: String, _ path: String) async -> Bool { await response(host, path)?.status == 200 }

    private func response(_ host: String, _ path: String) async -> Response? {
        let url = "http://\(network.address(host)):8008\(path)"
        return try? await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
    }

    /// Prints what Patroni reports of each server, and the ends of the logs.
    package func printDiagnostics() async {
        for host in Self.servers {
            let state = await response(host, "/patroni").map { String(decoding: $0.body, as: UTF8.self) }
            let log = (try? String(contentsOfFile: folder.logPath(host), encoding: .utf8)) ?? ""
            print("--- \(host)\n\(log.suffix(Self.logLengthMax))\n\(state ?? "no response")")
        }
    }

    private static let logLengthMax = 8_000

    // MARK: Hosts

    /// The file system of a server's data.
    package func disk(of host: String) -> String { "\(folder.path)/\(host)" }

    /// Starts the processes of one of PostgreSQL's hosts, which must have ended.
    package func start(_ host: String) throws { try start(host, ["patroni", "\(folder.path)/\(host).yml"]) }

    /// Starts the servers that have ended, and waits until the standby is synchronous.
    package func repair() async throws {
        for (name, _) in supervisor.ended { try start(name) }
        if isSynchronous { try await waitUntilReplicated() } else { try await setSynchronous(true) }
    }

    private func startEtcd() throws {
        let url = "http://\(network.address("etcd")):2379"
        let data = "\(folder.path)/etcd"
        try HostNetwork.run("install -d -o postgres -m 700 \(data)")
        try start(
            "etcd",
            [
                "etcd", "--data-dir", data, "--listen-client-urls", url, "--advertise-client-urls", url,
                "--log-level", "warn", "--enable-v2",
            ])
    }

    private func startBouncer() throws {
        let (file, script) = ("\(folder.path)/pgbouncer.ini", "\(folder.path)/pgbouncer.sh")
        try Data(bouncer.utf8).write(to: URL(fileURLWithPath: file))
        try Data(bouncerScript.utf8).write(to: URL(fileURLWithPath: script))
        try HostNetwork.run("install -o postgres /dev/null \(folder.path)/database.ini")
        try start("pgbouncer", ["sh", script, folder.path] + Self.servers.map(network.address))
    }

    private func start(_ host: String, _ command: [String]) throws {
        let entered = network.command(
            ClusterProcess.Command(
                executable: "/usr/bin/env", arguments: ClusterServer.asUser + command,
                environment: [
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", ClusterFolder.mark: folder.markValue,
                ],
                logPath: folder.logPath(host)),
            on: host)
        try supervisor.start(host) { [folder] in try folder.start(entered, name: host) }
    }

    // MARK: Files

    /// Version 2 of etcd's API: with version 3, Patroni 3.0.2 writes the leader's key without a comparison, and a
    /// primary that was suspended takes it from the promoted standby.
    private func patroni(_ host: String) throws -> String {
        let address = network.address(host)
        return """
            scope: fieldpost
            name: \(host)
            restapi: {listen: "\(address):8008", connect_address: "\(address):8008"}
            etcd: {host: "\(network.address("etcd")):2379"}
            bootstrap:
              dcs:
                ttl: 20
                loop_wait: 2
                retry_timeout: 5
                synchronous_mode: true
                maximum_lag_on_failover: \(Self.diskBytes)
                postgresql:
                  use_pg_rewind: true
                  parameters:
                    max_connections: 300
                    shared_buffers: 64MB
                    fsync: "off"
                    max_wal_size: 128MB
                    dynamic_shared_memory_type: mmap
              initdb: [{encoding: UTF8}, {locale: C.UTF-8}]
            postgresql:
              listen: "\(address):5432"
              connect_address: "\(address):5432"
              data_dir: \(disk(of: host))/data
              bin_dir: \(try ClusterServer.findBinaries())
              authentication:
                superuser: {username: \(ClusterServer.user)}
                replication: {username: \(ClusterServer.user)}
              parameters: {unix_socket_directories: \(disk(of: host))}
              pg_hba: [local all all trust, host all all all trust, host replication all all trust]
            """
    }

    private var bouncer: String {
        """
        %include \(folder.path)/database.ini
        [pgbouncer]
        listen_addr = \(network.address("pgbouncer"))
        listen_port = 6432
        unix_socket_dir =
        auth_type = any
        pool_mode = session
        default_pool_size = 200
        max_client_conn = 400
        server_connect_timeout = 2
        tcp_user_timeout = 10000
        tcp_keepidle = 5
        tcp_keepintvl = 2
        tcp_keepcnt = 3
        """
    }

    /// Lets PgBouncer follow the primary: each second, Patroni is polled for it.
    private var bouncerScript: String {
        """
        cd "$1" && shift
        current=
        while true; do
            for host in "$@"; do
                [ "$host" != "$current" ] && curl -sf -o /dev/null -m 1 "http://$host:8008/primary" || continue
                current=$host
                printf '[databases]\\nfieldpost = host=%s user=\(ClusterServer.user)\\n' "$host" >database.ini
                [ -n "$bouncer" ] && kill -HUP "$bouncer" && continue
                pgbouncer -q pgbouncer.ini &
                bouncer=$!
            done
            sleep 1
        done
        """
    }
}
