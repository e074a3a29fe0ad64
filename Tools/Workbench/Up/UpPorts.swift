import LocalCluster
import Model

/// Ports of this machine: free ports are chosen once and stored; a port that another process has taken since is
/// replaced.
struct UpPorts: Equatable, Sendable {
    /// All ports by name, including unused names.
    private(set) var ports: [String: Int] = [:]
    /// The stored ports that were replaced.
    private(set) var moved: [String: Int] = [:]

    private static let step = 100

    /// - Parameters:
    ///   - stored: The `text` of an earlier run.
    ///   - preferred: The names, each with its preferred port.
    ///   - take: Claims a port; `false` if another process has it.
    init(_ stored: String, preferred: [(name: String, port: Int)], take: (Int) -> Bool) {
        for line in stored.split(separator: "\n") {
            let parts = line.split(separator: "=")
            if parts.count == 2, let port = Int(parts[1]) { ports[String(parts[0])] = port }
        }
        for (name, first) in preferred {
            let old = ports[name]
            var port = old ?? first
            while ports.contains(where: { $0.key != name && $0.value == port }) || !take(port) { port += Self.step }
            ports[name] = port
            if let old, old != port { moved[name] = old }
        }
    }

    /// A line for each, `name=port`, sorted.
    var text: String { ports.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined() }

    subscript(name: String) -> Int { ports[name] ?? 0 }

    /// The preferred ports, in the order of the catalogue.
    static var preferred: [(name: String, port: Int)] {
        [
            ("postgres", 15432), ("broker", 19092), ("identity", 18081), ("sap", 18200), ("economic", 18300),
            ("compass", 18202), ("console", 18084),
        ]
            + Services.all.compactMap(\.endpoint).map { ($0.name, $0.localPort) }
            + Services.all.map { ($0.name, $0.localAdminPort) }
    }
}

extension ClusterHome {
    init(_ folder: ClusterFolder, _ ports: UpPorts) {
        var listening = LocalCluster.Part.emulators.map { ($0, ports[$0.name]) }
        for service in Services.all {
            if let endpoint = service.endpoint { listening.append((LocalCluster.Part(service), ports[endpoint.name])) }
        }
        self.init(
            folder: folder, ports: Dictionary(uniqueKeysWithValues: listening),
            adminPorts: Dictionary(uniqueKeysWithValues: Services.all.map { (LocalCluster.Part($0), ports[$0.name]) }),
            consolePort: ports["console"])
    }
}
