import DeviceClient
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres

/// The first person as a manager, who creates tasks of teams on one device and has another. Both it and a member of a
/// team are live.
final class BenchManager {
    /// Arrival at the manager's other device, and at the member's.
    let (own, member) = (LatencyClock(), LatencyClock())
    private let installation: BenchInstallation
    /// The people's ids, in the order of the installation's people.
    private let people: [UUID]
    /// The team of the second person, who is live.
    private(set) var team = UUID()
    private var sender: BenchSender
    private var receivers: [Task<Void, any Error>] = []

    private static let arrivalMax = Duration.seconds(30)

    init(_ installation: BenchInstallation) async throws {
        self.installation = installation
        let environment = installation.environment
        let setup = installation.stage.setup(BenchInstallation.environmentName, backend: installation.sap)
        try await setup.invite(installation.people, to: environment)
        let people = try await setup.objects(of: installation.people, in: environment)
        self.people = people
        try await installation.pool.run { connection in
            try DemoSetup.give([(people[0], .manager)], in: environment, on: &connection)
        }
        sender = try BenchSender(installation, .fieldTask, in: .manager)
        team = try await addTeam(member: 1)
        try await open()
    }

    deinit { for receiver in receivers { receiver.cancel() } }

    /// Creates a team with one member.
    ///
    /// - Parameter member: The person's number.
    func addTeam(member: Int) async throws -> UUID {
        let (team, person) = (UUID(), people[member])
        try await send(BenchKinds.put("Team", team, #"{"name":"\#(team.text)"}"#, in: .common))
        try await send(
            BenchKinds.put(
                "Membership", Membership.id(of: person, in: team),
                #"{"person":"\#(person.text)","team":"\#(team.text)"}"#, in: .common))
        return team
    }

    func delete(_ team: UUID) async throws { try await send(BenchKinds.delete("Team", team, in: .common)) }

    private func send(_ body: [UInt8]) async throws {
        try await waitUntil("the manager's role applies", within: Self.arrivalMax, interval: .milliseconds(50)) {
            let response = try await installation.gateway.send(body, token: installation.tokens[0])
            return try BenchKinds.isAccepted(response, unless: "realm-not-permitted")
        }
    }

    /// Opens the streams of the manager's other device and of the team's member.
    private func open() async throws {
        let realms: [(RealmPath, LatencyClock)] = [(.manager, own), (.team(team), member)]
        for (token, (realm, clock)) in zip(installation.tokens, realms) {
            receivers.append(
                try await installation.receive(token: token) { path, changes, now in
                    if path == realm { for change in changes { clock.stop(change.id.id, at: now) } }
                })
        }
    }

    /// Creates tasks of a team, assigned to a member.
    ///
    /// - Parameters:
    ///   - member: The person's number.
    ///   - clocks: Started at the times of the tasks.
    func send(
        _ count: Int, perSecond rate: Int, to team: UUID, member: Int, _ clocks: [LatencyClock] = []
    ) async throws {
        let fields = Array(
            """
            {"title":"Bulky items","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
            "creationDate":"2017-12-31T18:20:00.000Z","isCompleted":false,\
            "team":"\(team.text)","assignee":"\(people[member].text)"}
            """.utf8)
        try await sender.send(count, perSecond: rate, clocks) { _ in fields }
    }

    /// Creates tasks of the live team, whose arrivals are measured.
    func send(_ count: Int, perSecond rate: Int) async throws {
        try await send(count, perSecond: rate, to: team, member: 1, [own, member])
    }

    /// Waits until all tasks have arrived, and returns the latencies since the last time.
    func take(_ clock: LatencyClock) async throws -> [Duration] {
        try await clock.waitUntilComplete(within: Self.arrivalMax)
        return clock.take()
    }
}
