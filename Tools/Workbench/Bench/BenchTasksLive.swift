import ArgumentParser
import DeviceClient
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres

/// Latency of a manager's task to a member of its team, compared with the manager's other device.
struct BenchTasksLive: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "tasks-live",
        abstract: "Measure the latency of tasks from a manager to a member of the team.",
        discussion: """
            A manager creates tasks of a team. The manager's other device receives them from the gateway. The \
            member receives the team's copy, after the relay, the broker, task-fan-out and the gateway.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Tasks per second.") var rate = 100
    @Option(help: "Duration of a run's tasks, in seconds.") var seconds = 6

    func validate() throws {
        try BenchOptions.check(rate, in: 1...10_000, "--rate")
        try BenchOptions.check(seconds, in: 1...3_600, "--seconds")
    }

    static let targets = [(50, 3.0), (99, 4.0)].map { percent, limit in
        BenchTarget(
            name: "member / own device, p\(percent)", figure: "member, p\(percent)",
            reference: "own device, p\(percent)", limit: .atMost(limit))
    }

    private static let arrivalMax = Duration.seconds(30)

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(services: [.relay, .gateway, .taskFanOut], peopleCount: 2)
    }

    final class Fixture {
        /// Arrival at the manager's other device, and at the member's.
        let (own, member) = (LatencyClock(), LatencyClock())
        let fields: [UInt8]
        var sender: BenchSender
        var receivers: [Task<Void, any Error>] = []

        init(_ fields: String, _ sender: BenchSender) { (self.fields, self.sender) = (Array(fields.utf8), sender) }

        deinit { for receiver in receivers { receiver.cancel() } }
    }

    func setUp(_ installation: BenchInstallation) async throws -> Fixture {
        let (people, environment) = (installation.people, installation.environment)
        let setup = installation.stage.setup(BenchInstallation.environmentName, backend: installation.sap)
        try await setup.invite(people, to: environment)
        let persons = try await setup.objects(of: people, in: environment)
        let (team, member) = (UUID(), persons[1])
        let membership = Membership.id(of: member, in: team)
        try await installation.pool.run { connection in
            try DemoSetup.give([(persons[0], .manager)], in: environment, on: &connection)
        }
        for body in [
            BenchKinds.put("Team", team, #"{"name":"Team"}"#, in: .common),
            BenchKinds.put(
                "Membership", membership, #"{"person":"\#(member.text)","team":"\#(team.text)"}"#, in: .common),
        ] {
            try await waitUntil("the manager's role applies", within: Self.arrivalMax, interval: .milliseconds(50)) {
                let response = try await installation.gateway.send(body, token: installation.tokens[0])
                return try BenchKinds.isAccepted(response, unless: "realm-not-permitted")
            }
        }
        let fields = """
            {"title":"Bulky items","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
            "creationDate":"2017-12-31T18:20:00.000Z","isCompleted":false,\
            "team":"\(team.text)","assignee":"\(member.text)"}
            """
        let fixture = Fixture(fields, try BenchSender(installation, .fieldTask, in: .manager))
        let realms: [(RealmPath, LatencyClock)] = [(.manager, fixture.own), (.team(team), fixture.member)]
        for (token, (realm, clock)) in zip(installation.tokens, realms) {
            fixture.receivers.append(
                try await installation.receive(token: token) { path, changes, now in
                    if path == realm { for change in changes { clock.stop(change.id.id, at: now) } }
                })
        }
        return fixture
    }

    func measure(
        _ fixture: Fixture, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try await fixture.sender.send(rate * seconds, perSecond: rate, fixture.own, fixture.member) { _ in
            fixture.fields
        }
        for (name, clock) in [("own device", fixture.own), ("member", fixture.member)] {
            try await clock.waitUntilComplete(within: Self.arrivalMax)
            let latencies = clock.take()
            for percent in [50, 99] {
                report.add(
                    "\(name), p\(percent)", "ms", (latencies.percentile(percent)?.inSeconds ?? .nan) * 1_000)
            }
        }
    }
}
