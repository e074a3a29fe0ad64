import Essentials
import Foundation
import Synchronization

/// Hosts on one machine: network namespaces with an address each, and the router that connects them.
///
/// The router is the network namespace of this process, so every packet between two hosts passes its firewall, where
/// faults are rules. Devices run on the router. It needs root and a network namespace without other interfaces, both of
/// which `deploy/host-test` provides; they end with this process.
package final class HostNetwork: Sendable {
    /// A direction of traffic, between hosts or between a host and devices. `nil`: any peer.
    package struct Direction: Sendable {
        let source: String?
        let destination: String?

        package static func from(_ source: String?, to destination: String?) -> Direction {
            Direction(source: source, destination: destination)
        }
    }

    private let names: [String]
    /// The program that delays packets.
    private let delaying = Mutex<ClusterProcess?>(nil)
    /// The environment variables of hosts whose clocks have an offset.
    private let clocks = Mutex<[String: [String: String]]>([:])
    private static let router = "10.77.0.1"
    /// The mark of packets that are delayed, and their routing table.
    private static let delayTable = 100

    /// Set by `deploy/host-test` in the namespaces that it makes.
    private static let mark = "HOST_TEST_NAMESPACES"
    /// The chains that have the rules of faults, by table and the chain that calls them.
    private static let chains = [
        ("filter", "FORWARD"), ("filter", "INPUT"), ("filter", "OUTPUT"), ("mangle", "PREROUTING"),
    ]

    /// - Throws: `ClusterFailure` outside of such namespaces, or if another interface than `lo` is up.
    package init(_ names: [String]) throws {
        self.names = names
        let interfaces = try runToEnd("ip", ["-o", "link", "show", "up"]).split(separator: "\n")
        guard ProcessInfo.processInfo.environment[Self.mark] == "yes", interfaces.allSatisfy({ $0.hasPrefix("1: lo:") })
        else { throw ClusterFailure("hosts need an empty network namespace: start them with deploy/host-test") }
        try Self.run(
            """
            ip link set lo up && ip address add \(Self.router)/32 dev lo
            sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
            """)
        for (table, chain) in Self.chains {
            try Self.run(
                """
                iptables -t \(table) -N FAULT-\(chain)
                iptables -t \(table) -A \(chain) -j FAULT-\(chain)
                """)
        }
        for (index, name) in names.enumerated() {
            let (link, address) = ("host\(index)", address(name))
            try Self.run(
                """
                ip netns add \(name) && ip link add \(link) type veth peer name eth0 netns \(name)
                ip link set \(link) up && ip route add \(address) dev \(link) src \(Self.router)
                ip -n \(name) link set lo up && ip -n \(name) link set eth0 up
                ip -n \(name) address add \(address)/32 dev eth0
                ip -n \(name) route add \(Self.router) dev eth0 && ip -n \(name) route add default via \(Self.router)
                """)
        }
    }

    /// The address of a host.
    package func address(_ name: String) -> String { "10.77.1.\((names.firstIndex(of: name) ?? -2) + 1)" }

    /// The command, run on a host.
    package func command(_ command: ClusterProcess.Command, on name: String) -> ClusterProcess.Command {
        var entered = command
        entered.executable = "/usr/bin/nsenter"
        entered.arguments = ["--net=/run/netns/\(name)", command.executable] + command.arguments
        entered.environment.merge(clocks.withLock { $0[name] ?? [:] }) { $1 }
        return entered
    }

    // MARK: Faults of the network

    /// Drops all packets of these directions, until ``heal()``.
    package func cut(_ directions: [Direction]) throws {
        for direction in directions {
            let source = direction.source.map { " -s \(address($0))" } ?? ""
            let destination = direction.destination.map { " -d \(address($0))" } ?? ""
            try Self.run("iptables -A FAULT-FORWARD\(source)\(destination) -j DROP")
            if direction.destination == nil { try Self.run("iptables -A FAULT-INPUT\(source) -j DROP") }
            if direction.source == nil { try Self.run("iptables -A FAULT-OUTPUT\(destination) -j DROP") }
        }
    }

    /// Drops all packets in both directions between each of these hosts and a peer (`nil`: all hosts and devices).
    package func separate(_ hosts: [String], from peer: String? = nil) throws {
        try cut(hosts.flatMap { [Direction.from($0, to: peer), .from(peer, to: $0)] })
    }

    /// Drops random packets between all hosts, and between hosts and devices.
    package func lose(percent: Int) throws {
        let rule = "-m statistic --mode random --probability \(Double(percent) / 100) -j DROP"
        for chain in ["FORWARD", "INPUT ! -i lo", "OUTPUT ! -o lo"] {
            try Self.run("iptables -A FAULT-\(chain) \(rule)")
        }
    }

    /// Delays every packet from `hosts` to `peers` and back by the half of a round trip: the router sends it through a
    /// program, which holds it for this time.
    package func delay(_ roundTrip: Duration, between hosts: [String], and peers: [String]) throws {
        let mark = "-j MARK --set-mark \(Self.delayTable)"
        for (host, peer) in hosts.flatMap({ host in peers.map { (address(host), address($0)) } }) {
            try Self.run(
                """
                iptables -t mangle -A FAULT-PREROUTING ! -i delay -s \(host) -d \(peer) \(mark)
                iptables -t mangle -A FAULT-PREROUTING ! -i delay -s \(peer) -d \(host) \(mark)
                """)
        }
        try Self.run(
            """
            ip tuntap add dev delay mode tun && ip link set delay up
            ip rule add fwmark \(Self.delayTable) table \(Self.delayTable)
            ip route add default dev delay table \(Self.delayTable)
            """)
        let program = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/usr/bin/python3", arguments: ["-c", Self.delayProgram, "\(roundTrip.inSeconds / 2)"],
                environment: ["PATH": "/usr/bin:/bin"], logPath: nil))
        delaying.withLock { $0 = program }
    }

    /// Ends all faults of the network.
    package func heal() throws {
        delaying.withLock { $0.take() }?.kill9()
        for (table, chain) in Self.chains { try Self.run("iptables -t \(table) -F FAULT-\(chain)") }
        try Self.run(
            """
            ip rule del fwmark \(Self.delayTable) 2>/dev/null || true
            ip link del delay 2>/dev/null || true
            """)
    }

    /// Reads packets from the device `delay`, and writes each back after the time of its argument.
    private static let delayProgram = """
        import collections, fcntl, itertools, os, select, struct, sys, time
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, 0x400454CA, struct.pack("16sH", b"delay", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
        wait, held = float(sys.argv[1]), collections.deque()
        while True:
            # No timeout while no packet is held.
            timeout = [max(0, due - time.monotonic()) for due, _ in itertools.islice(held, 1)]
            if select.select([device], [], [], *timeout)[0]:
                held.append((time.monotonic() + wait, os.read(device, 65536)))
            while held and held[0][0] <= time.monotonic():
                os.write(device, held.popleft()[1])
        """

    // MARK: Faults of hosts

    /// Suspends a host: its processes stop, and it neither sends nor receives.
    package func freeze(_ name: String) throws {
        try separate([name])
        try signal(SIGSTOP, to: name)
    }

    /// Resumes a host; its network is restored by ``heal()``.
    package func thaw(_ name: String) throws { try signal(SIGCONT, to: name) }

    /// Ends all processes of a host, as the loss of its power does.
    package func kill9(_ name: String) throws {
        // One of them may start another until all are stopped.
        try signal(SIGSTOP, to: name)
        try signal(SIGKILL, to: name)
    }

    /// Sets the clock of a host for the processes that are started on it from now on (libfaketime).
    ///
    /// - Throws: `ClusterFailure` if the library is not installed.
    package func setClock(_ name: String, offset: Duration?) throws {
        guard let offset else { return clocks.withLock { $0[name] = nil } }
        let folders = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib")
        let libraries = folders.map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
        guard let library = libraries.first(where: FileManager.default.fileExists) else {
            throw ClusterFailure("libfaketime is missing: apt-get install libfaketime")
        }
        let variables = [
            "LD_PRELOAD": library, "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME": "\(offset > .zero ? "+" : "")\(offset.components.seconds)s",
        ]
        clocks.withLock { $0[name] = variables }
    }

    private func signal(_ number: Int32, to name: String) throws {
        for _ in 0..<3 {
            for process in try runToEnd("ip", ["netns", "pids", name]).split(separator: "\n") {
                if let id = pid_t(process) { kill(id, number) }
            }
        }
    }

    static func run(_ script: String) throws { try runToEnd("sh", ["-ec", script]) }
}
