import ArgumentParser
import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Mutations of a kind that the environment declares, compared with those of a built-in kind.
struct BenchOwnKinds: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "own-kinds",
        abstract: "Compare mutations of a declared kind with those of a built-in kind.",
        discussion: """
            Several devices put objects in full requests, each for the same number of Note objects and of objects of a \
            kind with the same fields. The requests of both kinds alternate.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of mutations of each kind.") var mutations = 20_000
    @Option(help: "Number of devices.") var devices = 8
    @Option(help: "Number of mutations of a request.") var batch = 100

    func validate() throws {
        try BenchOptions.check(mutations, in: 100...10_000_000, "--mutations")
        try BenchOptions.check(devices, in: 1...1_000, "--devices")
        try BenchOptions.check(batch, in: 1...500, "--batch")
    }

    static let targets = [
        BenchTarget(
            name: "time of a mutation, declared / built-in", figure: "declared kind", reference: "built-in kind",
            limit: .atMost(1.15))
    ]

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(services: [.gateway], peopleCount: devices)
    }

    /// The fields of `Note` that the objects have.
    private static let file = """
        {"kinds": {"Memo": {
            "realms": ["user"],
            "properties": {
                "title": {"type": "string", "maxLength": 500},
                "body": {"type": ["string", "null"], "maxLength": 20000},
                "isTask": {"type": "boolean"},
                "isDone": {"type": "boolean"}
            },
            "required": ["title"],
            "permissions": [{"who": ["owner"], "may": ["create", "change", "delete"]}]
        }}}
        """

    /// - Returns: The declared kind.
    func setUp(_ installation: BenchInstallation) async throws -> Kind {
        let environment = installation.environment
        return try await installation.pool.run { connection in
            try BenchKinds.apply(Self.file, to: environment, on: &connection)
            let kind = try KindCatalogue.load(environment, on: &connection).kind(named: "Memo")
            guard let kind else { throw ClusterFailure("the kind was not declared") }
            return kind
        }
    }

    func measure(_ declared: Kind, on installation: BenchInstallation, _ report: inout BenchReport) async throws {
        // Alternating parts: a checkpoint of PostgreSQL concerns both.
        let partCount = 10
        var times: [(name: String, kind: Kind, total: Duration)] = [
            ("built-in kind", .note, .zero), ("declared kind", declared, .zero),
        ]
        for part in 0..<partCount {
            for index in part % 2 == 0 ? [0, 1] : [1, 0] {
                let start = ContinuousClock.now
                try await put(mutations / partCount, times[index].kind, on: installation)
                times[index].total += .now - start
            }
        }
        for (name, _, total) in times {
            report.add(name, "µs/mutation", total.inSeconds * 1_000_000 / Double(mutations / partCount * partCount))
        }
    }

    /// Puts objects of a kind from all devices at once, each with one request at a time.
    private func put(_ count: Int, _ kind: Kind, on installation: BenchInstallation) async throws {
        try await withThrowingTaskGroup { group in
            for (person, token) in zip(installation.people, installation.tokens) {
                let (share, batch) = (count / devices, batch)
                group.addTask {
                    var device = DeviceState(clientID: UUID())
                    let realm = try RealmPath.user(person.email)
                    for number in 0..<share {
                        let fields = #"{"title":"Note \#(number)","body":"Check the ladder.","isTask":false}"#
                        let mutation = Mutation(operation: .put, kind: kind, id: UUID(), fields: Array(fields.utf8))
                        _ = try device.enqueue(mutation, in: realm)
                    }
                    while let request = device.nextRequest(countMax: batch) {
                        let response = try await installation.gateway.send(request.body, token: token)
                        guard let read = try QueueResponse.read(status: response.status, body: response.body) else {
                            throw GatewayClient.UnexpectedResponse(response)
                        }
                        for answer in device.take(read, to: request, newClientID: UUID()).answers {
                            guard case .rejected(let code, let detail) = answer.outcome else { continue }
                            throw ClusterFailure("the gateway rejected a mutation: \(code) \(detail)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
