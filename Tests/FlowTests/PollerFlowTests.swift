import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// The poller while it is killed.
    struct PollerFlowTests {
        /// The poller is killed repeatedly while records arrive: none is missed. Afterwards only the polls themselves
        /// are written.
        @Test(.timeLimit(.minutes(20)), arguments: Seeds.random(1, for: "kills of the poller"))
        func aKilledPollerMissesNothingAndAnUnchangedPollWritesNothing(seed: UInt64) async throws {
            try await withCluster("poller-kills", .withPoller) { cluster in
                let flow = try await PollerFlow(cluster)
                let killer = Killer(cluster: cluster, parts: [.poller], seed: seed, pause: .seconds(1))
                async let kills: Void = killer.kill(8)
                var numbers: Set<String> = []
                for index in 1...40 {
                    numbers.insert(try await flow.createElsewhere("work \(index)"))
                    try await Task.sleep(for: .milliseconds(200))
                }
                try await kills
                try await eventually("all records are entries") {
                    let found = try flow.entries().values.compactMap(\.backendId)
                    return Set(found) == numbers && found.count == numbers.count ? nil : "\(found.count)"
                }
                try await flow.waitForRuns(2)
                let before = try flow.positions()
                try await flow.waitForRuns(2)
                #expect(try flow.positions() == before)
            }
        }
    }
}

extension LocalCluster.Options {
    static var withPoller: LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .initializer, .submitter, .poller]
        return options
    }
}

/// Two people whose back end is polled every five seconds.
private struct PollerFlow: Sendable {
    let cluster: LocalCluster
    let organisation = SmallOrganisation(peopleCount: 2)
    let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day

    private var person: SmallOrganisation.Person { organisation.people[0] }

    init(_ cluster: LocalCluster) async throws {
        self.cluster = cluster
        try await organisation.load(into: cluster)
        try await cluster.runCommand(["environment", "edit", SmallOrganisation.environment, "--poll-interval", "5"])
        try await eventually("the realms are filled") {
            var writer = try RealmWriter(cluster.conninfo)
            return try writer.initializedCount() == 2 ? nil : "not yet"
        }
    }

    // MARK: Acting

    /// - Returns: The record's number.
    func createElsewhere(_ text: String) async throws -> String {
        let client = Client()
        defer { client.shutDown() }
        let settings = SAPSettings(baseURL: cluster.sapURL, user: "FIELDPOST", password: LocalCluster.passwordOfSAP)
        let reference = ["personWorkAgreementExternalId": person.agreement, "companyCode": "1010"]
        let today = today
        return try await SAPBackend(settings, client: client) { today }.create(
            Submission(
                marker: "", person: BackendPerson(email: person.email, reference: reference), day: today,
                durationSeconds: 1_800, text: text, references: ["Accounting code": "P2.1"]))
    }

    // MARK: Reading

    func entries() throws -> [UUID: TimeEntry] {
        var found: [UUID: TimeEntry] = [:]
        for (id, json) in try objects("TimeEntry") { found[id] = try JSONDecoder().decode(TimeEntry.self, from: json) }
        return found
    }

    private func objects(_ kind: String) throws -> [(id: UUID, json: Data)] {
        var connection = try Connection(cluster.conninfo)
        let rows = try connection.run(
            "SELECT id, fields::text FROM realm.object WHERE kind = \(kind) AND NOT deleted")
        return try rows.map { (try $0.value(0), Data(try $0.value(1, as: String.self).utf8)) }
    }

    /// The newest positions of all objects but the polls.
    func positions() throws -> Int64 {
        var connection = try Connection(cluster.conninfo)
        return try connection.run("SELECT max(position) FROM realm.object WHERE kind <> 'Poll'")[0].value(0)
    }

    /// Waits until that many more runs are done for both people.
    func waitForRuns(_ count: Int64) async throws {
        func finished() throws -> Int64 {
            var connection = try Connection(cluster.conninfo)
            return try connection.run("SELECT min(run) FROM poll.finished")[0].value(0)
        }
        let first = try finished()
        try await eventually("\(count) runs are done") {
            let now = try finished()
            return now >= first + count ? nil : "\(first), now \(now)"
        }
    }
}
