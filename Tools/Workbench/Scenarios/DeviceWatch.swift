import DeviceClient
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Synchronization

/// Three devices in an environment of their own that measure how long their changes take.
///
/// The first receives its own changes. The second shares objects with the third, by the relay, Kafka and
/// `share-fan-out`.
final class DeviceWatch: Sendable {
    static let environment = "watch"
    private static let emails = (1...3).map { "device\($0)@\(environment).example" }
    private static let owners = emails.map { Organisation.Person($0) }
    /// Time from a received change to the next one.
    private static let pause = Duration.milliseconds(100)

    private struct Waits {
        var accepted = WaitClock()
        var seen = WaitClock()
        var shared = WaitClock()
    }

    private let devices: [Device]
    private let people: [UUID]
    private let waits = Mutex(Waits())

    /// Adds the environment with the command line of the cluster's build.
    static func adding(on stage: ScenarioStage) async throws -> DeviceWatch {
        let (cluster, identity) = (stage.cluster, stage.identity)
        let issuer = try await identity.issuer(below: environment).issuer
        let file = cluster.folder.path + "/\(environment).json"
        let people = emails.map { "{\"email\": \"\($0)\", \"reference\": {}}" }
        try Data("[\(people.joined(separator: ", "))]".utf8).write(to: URL(filePath: file))
        try await cluster.runCommand([
            "environment", "add", environment, "--domain", "\(environment).example", "--issuer", issuer,
            "--audience", DemoSetup.audience, "--backend", "none", "--people", file,
        ])
        try await cluster.runCommand(["environment", "invite", "--all", "--environment", environment])
        return try await DeviceWatch(stage.setup(environment), gateways: [stage.gateway])
    }

    /// Adds the environment unless it exists, with this build. The identity provider needs no TLS, which the command
    /// line demands of one on another host.
    ///
    /// - Parameter gateways: The gateways of the devices, one after the other.
    static func adding(_ setup: DemoSetup, gateways: [GatewayClient]) async throws -> DeviceWatch {
        let added = try await setup.addEnvironment(owners)
        try await setup.invite(owners, to: added.id)
        return try await DeviceWatch(setup, gateways: gateways)
    }

    private init(_ setup: DemoSetup, gateways: [GatewayClient]) async throws {
        let added = try await setup.environment()
        let tokens = try await DeviceTokens(setup.identity, environment: Self.environment, issuer: added.issuer)
        let granted = try await tokens.tokens(for: Self.owners)
        devices = try Self.owners.enumerated().map { index, owner in
            try Device(
                person: owner, gateway: gateways[index % gateways.count], tokens: tokens, token: granted[index],
                clientID: UUID())
        }
        people = try await setup.objects(of: Self.owners, in: added.id)
    }

    /// Measures until the task is cancelled.
    func run() async throws {
        try await Device.whileRunning(devices) { [self] in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.writeAndRead() }
                group.addTask { try await self.shareAndReceive() }
                try await group.next()
            }
        }
    }

    /// Returns the longest waits since the last call, including the current ones, in seconds.
    func takeWaits() -> [String: Double] {
        waits.withLock { waits in
            [
                "accepted": waits.accepted.takeLongest().inSeconds, "seen": waits.seen.takeLongest().inSeconds,
                "shared": waits.shared.takeLongest().inSeconds,
            ]
        }
    }

    /// Waits until changes that are written from now on have been received.
    ///
    /// - Returns: The time since `instant`.
    func recovery(since instant: ContinuousClock.Instant, within: Duration) async throws -> Duration {
        let before = counts
        // The next change that is received may have been written before.
        try await waitUntil("the watched devices receive changes", within: within) {
            counts.seen >= before.seen + 2 && counts.shared >= before.shared + 2
        }
        return ContinuousClock.now - instant
    }

    /// The number of notes that the first and the third device have received.
    var counts: (seen: Int, shared: Int) { waits.withLock { ($0.seen.count, $0.shared.count) } }

    private func writeAndRead() async throws {
        let (device, id) = (devices[0], UUID())
        let address = ObjectID(kind: .note, id: id)
        let realm = device.realm
        for number in 1... {
            let text = "\(number)"
            waits.withLock { waits in
                waits.accepted.begin()
                waits.seen.begin()
            }
            try await device.enqueue([.put(.note, id, Note(title: "Watch", body: text))])
            try await device.until { $0.queue.count == 0 }
            waits.withLock { $0.accepted.end() }
            try await device.until { $0.copy[realm, address]?.decoded(as: Note.self)?.body == text }
            waits.withLock { $0.seen.end() }
            try await Task.sleep(for: Self.pause)
        }
    }

    private func shareAndReceive() async throws {
        let (writer, reader, id) = (devices[1], devices[2], UUID())
        let address = ObjectID(kind: .note, id: id)
        let realm = RealmPath.share(Share.id(of: people[1], with: people[2]))
        let link = SharedItem(kind: .note, item: id, recipient: people[2])
        for number in 1... {
            let text = "\(number)"
            waits.withLock { $0.shared.begin() }
            try await writer.enqueue([.put(.note, id, Note(title: "Watch", body: text))])
            if number == 1 {
                try await writer.enqueue([.put(.sharedItem, SharedItem.id(of: id, with: people[2]), link)])
            }
            try await reader.until { $0.copy[realm, address]?.decoded(as: Note.self)?.body == text }
            waits.withLock { $0.shared.end() }
            try await Task.sleep(for: Self.pause)
        }
    }
}
