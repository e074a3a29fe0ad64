import Access
import ArgumentParser
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import Postgres

/// Memory of a gateway that serves many environments with declared kinds, compared with environments without.
struct BenchOwnKindsMemory: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "own-kinds-memory",
        abstract: "Measure the memory that declared kinds need in a gateway.",
        discussion: """
            The gateway is restarted before each measurement. An integration of each environment then writes one \
            object and gets the declarations: in environments without declared kinds, with the same schema file, and \
            with a file of their own.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of environments of each group.") var environments = 1_000
    @Option(help: "Number of kinds of a file, with 8 fields each.") var kinds = 50

    func validate() throws {
        try BenchOptions.check(environments, in: 1...10_000, "--environments")
        try BenchOptions.check(kinds, in: 1...100, "--kinds")
    }

    static let targets = [Group.equal, .different].map {
        BenchTarget(name: $0.additional, figure: $0.additional, statistic: .maximum, limit: .atMost(64))
    }

    enum Group: String, CaseIterable {
        case builtIn = "built-in kinds"
        case equal = "equal files"
        case different = "different files"

        /// The name of the figure of its additional memory.
        var additional: String { "additional memory, \(rawValue)" }
    }

    /// An environment with the key of its integration.
    struct Environment: Sendable {
        let key: String
        /// The kind of the object that is written.
        let kind: String
    }

    /// Time until memory is stable.
    private static let idleTime = Duration.seconds(3)
    private static let requestCountMax = 16

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration(services: [.gateway]) }

    func setUp(_ installation: BenchInstallation) async throws -> [Group: [Environment]] {
        let (environments, kinds) = (environments, kinds)
        return try await installation.pool.run { connection in
            var groups: [Group: [Environment]] = [:]
            for group in Group.allCases {
                let keys = (0..<environments).map { _ in IntegrationKey.make() }
                let ids = try Self.add(keys, group, on: &connection)
                for (number, (id, key)) in zip(ids, keys).enumerated() {
                    let own = "Own\(group == .different ? number : 0)"
                    groups[group, default: []].append(Environment(key: key, kind: group == .builtIn ? "Note" : own))
                    if group == .builtIn { continue }
                    try BenchKinds.apply(Self.file(own, kinds: kinds), to: id, on: &connection)
                }
            }
            return groups
        }
    }

    /// Adds environments with an integration.
    ///
    /// - Returns: Their ids, in the order of the keys.
    private static func add(
        _ keys: [String], _ group: Group, on connection: inout Connection
    ) throws -> [EnvironmentID] {
        let prefix = "\(group)-".lowercased()
        let added = try connection.run([
            """
            INSERT INTO realm.environment (name)
            SELECT \(prefix) || k.number FROM unnest(\(keys)) WITH ORDINALITY AS k(key, number)
            """,
            """
            SELECT e.id, sha256(convert_to(k.key, 'UTF8'))
            FROM unnest(\(keys)) WITH ORDINALITY AS k(key, number)
            JOIN realm.environment e ON e.name = \(prefix) || k.number
            ORDER BY k.number
            """,
        ])[1].decode(EnvironmentID.self, Bytea.self)
        for (id, hash) in added {
            _ = try IntegrationStore.add("bench", keyHash: hash, in: id, on: &connection)
        }
        return added.map(\.0)
    }

    /// A schema file of about 700 bytes for each kind.
    ///
    /// - Parameter own: The name of the kind that no other file has.
    private static func file(_ own: String, kinds: Int) -> String {
        let list = ([own] + (1..<max(kinds, 2)).map { "Kind\($0)" }).prefix(kinds).map { name in
            """
            "\(name)": {"realms": ["user", "team"], "properties": {
                "title": {"type": "string", "maxLength": 200, "description": "The title in lists of \(name)."},
                "state": {"enum": ["draft", "sent", "approved", "rejected"]},
                "count": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000},
                "day": {"type": ["string", "null"], "format": "date"},
                "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
                "photos": {"type": "array", "maxItems": 20,
                    "items": {"type": "string", "format": "uuid", "references": "image"}},
                "origin": {"type": ["string", "null"], "format": "uuid", "references": "\(own)"},
                "size": {"type": "object", "properties": {"width": {"type": "number"}, "height": {"type": "number"}}}
            }, "required": ["title"], "permissions": [
                {"who": ["owner", "member"], "may": ["create", "change"]}, {"who": ["manager"], "may": ["delete"]}
            ]}
            """
        }
        return "{\"kinds\": {\(list.joined(separator: ","))}}"
    }

    func measure(
        _ groups: [Group: [Environment]], on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        var reference = 0.0
        for group in Group.allCases {
            try await installation.restart(.gateway)
            let gateway = installation.gateway
            try await concurrentMap(groups[group] ?? [], parallelMax: Self.requestCountMax) { environment in
                try await Self.use(environment, of: gateway)
            }
            try await Task.sleep(for: Self.idleTime)
            let memory = installation.memory(of: .gateway, "VmRSS") / 1_024
            report.add("gateway, \(group.rawValue)", "MB", memory)
            if group == .builtIn { reference = memory } else { report.add(group.additional, "MB", memory - reference) }
        }
    }

    private static func use(_ environment: Environment, of gateway: GatewayClient) async throws {
        let realm = try RealmPath.user("ana@bench.example")
        let body = BenchKinds.put(environment.kind, UUID(), #"{"title":"Check the ladder."}"#, in: realm)
        _ = try BenchKinds.isAccepted(try await gateway.send(body, token: environment.key))
        let response = try await gateway.schema(token: environment.key)
        guard response.status == 200 else { throw GatewayClient.UnexpectedResponse(response) }
    }
}
