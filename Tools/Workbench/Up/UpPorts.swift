import LocalCluster
import Model

/// Ports of this machine: free ones are chosen once and remembered; a port that another process has taken since moves.
struct UpPorts: Equatable, Sendable {
    /// Each by its name, also those of names that nobody wants any more.
    private(set) var ports: [String: Int] = [:]
    /// What was remembered of those that had to move.
    private(set) var moved: [String: Int] = [:]

    private static let step = 100

    /// - Parameters:
    ///   - remembered: What `text` gave before.
    ///   - wanted: The names, each with the port that is tried first.
    ///   - take: Claims a port; `false` when another process has it.
    init(_ remembered: String, wanted: [(name: String, port: Int)], take: (Int) -> Bool) {
        for line in remembered.split(separator: "\n") {
            let parts = line.split(separator: "=")
            if parts.count == 2, let port = Int(parts[1]) { ports[String(parts[0])] = port }
        }
        for (name, first) in wanted {
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

    /// All that listens, in the order of the catalogue.
    static var wanted: [(name: String, port: Int)] {
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
        var listening = LocalCluster.Part.standIns.map { ($0, ports[$0.name]) }
        for service in Services.all {
            if let endpoint = service.endpoint { listening.append((LocalCluster.Part(service), ports[endpoint.name])) }
        }
        self.init(
            folder: folder, ports: Dictionary(uniqueKeysWithValues: listening),
            adminPorts: Dictionary(uniqueKeysWithValues: Services.all.map { (LocalCluster.Part($0), ports[$0.name]) }),
            consolePort: ports["console"])
    }
}
