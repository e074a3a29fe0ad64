import Backends
import Foundation
import HTTP
import Model
import Postgres
import Suite
import Testing

extension FlowTests {
    /// What happens in the back end reaches the people's realms.
    struct PollerFlowTests {
        @Test(.timeLimit(.minutes(3))) func whatHappensInTheBackEndReachesThePeople() async throws {
            try await withSuite("poller", .withPoller) { suite in
                let flow = try await PollerFlow(suite)
                let (own, record) = try await flow.submit("survey")
                try await flow.expect(own, .released)
                // An approver's moves, forth and back.
                for (code, status) in [("30", EntryStatus.approved), ("20", .released), ("40", .rejected)] {
                    try await suite.post(
                        "/sandbox/approvals", Data(#"{"record": "\#(record)", "status": "\#(code)"}"#.utf8))
                    try await flow.expect(own, status)
                }
                // An entry that somebody made in the back end.
                let number = try await flow.createElsewhere("elsewhere")
                try await eventually("it appears", within: .seconds(40)) {
                    let entry = try flow.entries().values.first { $0.backendId == number }
                    guard entry?.status == .released, entry?.reporting.count == 3 else {
                        return String(describing: entry)
                    }
                    return nil
                }
                // A project is added, another one closed.
                #expect(try flow.elements() == ["P1", "P2", "P3"])
                try await flow.load([("P1", true), ("P4", false)])
                try await eventually("the choices are others", within: .seconds(40)) {
                    let elements = try flow.elements()
                    return elements == ["P2", "P3", "P4"] ? nil : "\(elements)"
                }
                #expect(try flow.entries()[own]?.reporting.count == 3, "it keeps what it was reported on")
            }
        }

        /// The poller is killed again and again while records come: none is missed. Then nothing happens any more, and
        /// nothing is written but the polls themselves.
        @Test(.timeLimit(.minutes(3))) func aKilledPollerMissesNothingAndAnUnchangedPollWritesNothing() async throws {
            let seed = Killer.printedSeed(
                "kills of the poller", given: ProcessInfo.processInfo.environment["FLOW_SEED"])
            try await withSuite("poller-kills", .withPoller) { suite in
                let flow = try await PollerFlow(suite)
                let killer = Killer(suite: suite, parts: [.poller], seed: seed, pause: .seconds(1))
                async let kills: Void = killer.kill(8)
                var numbers: Set<String> = []
                for index in 1...40 {
                    numbers.insert(try await flow.createElsewhere("work \(index)"))
                    try await Task.sleep(for: .milliseconds(200))
                }
                try await kills
                try await eventually("all records are entries", within: .seconds(60)) {
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

extension Suite.Options {
    static var withPoller: Suite.Options {
        var options = Suite.Options.quick
        options.services = [.relay, .initializer, .submitter, .poller]
        return options
    }
}

/// Two people whose back end is looked at every five seconds.
private struct PollerFlow: Sendable {
    let suite: Suite
    let organisation = SmallOrganisation(peopleCount: 2)
    let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day

    private var person: SmallOrganisation.Person { organisation.people[0] }

    init(_ suite: Suite) async throws {
        self.suite = suite
        try await organisation.load(into: suite)
        try await suite.runCommand(["environment", "edit", SmallOrganisation.environment, "--poll-interval", "5"])
        try await eventually("the realms are filled", within: .seconds(30)) {
            var writer = try RealmWriter(suite.conninfo)
            return try writer.initializedCount() == 2 ? nil : "not yet"
        }
    }

    // MARK: Acting

    /// Submits an entry from a device.
    ///
    /// - Returns: Its id, and that of its record.
    func submit(_ text: String) async throws -> (UUID, record: String) {
        var writer = try RealmWriter(suite.conninfo)
        let choices = try writer.choices(of: person.email)
        let id = UUID()
        try writer.put(
            id, of: person.email,
            TimeEntry(
                text: text, reportingTemplate: choices.template, reporting: choices.selections[0].reporting,
                entryDate: today, durationSeconds: 3_600, submitRequested: true))
        try await expect(id, .released)
        let marker = EntryMarker.marker(of: id)
        let record = try #require(try await suite.recorded().first { $0.note.hasSuffix(marker) }?.record)
        return (id, record)
    }

    /// - Returns: The record's number.
    func createElsewhere(_ text: String) async throws -> String {
        let client = Client()
        defer { client.shutDown() }
        let settings = SAPSettings(baseURL: suite.sapURL, user: "FIELDPOST", password: Suite.passwordOfSAP)
        let reference = ["personWorkAgreementExternalId": person.agreement, "companyCode": "1010"]
        let today = today
        return try await SAPBackend(settings, client: client) { today }.create(
            Submission(
                marker: "", person: BackendPerson(email: person.email, reference: reference), day: today,
                durationSeconds: 1_800, text: text, references: ["Accounting code": "P2.1"]))
    }

    func load(_ projects: [(name: String, isBlocked: Bool)]) async throws {
        let partners = organisation.people.map { "\"\($0.partner)\"" }.joined(separator: ",")
        let list = projects.map { name, isBlocked in
            let number = 10 + (Int(name.dropFirst()) ?? 0)
            return """
                {"projectUuid": "\(SmallOrganisation.guid(number))", "project": "\(name)", "description": "\(name)",
                 "customerUuid": "\(SmallOrganisation.guid(1))", "timeRecordingBlocked": \(isBlocked),
                 "teamMembers": [\(partners)], "elements": [{"projectElementUuid":
                 "\(SmallOrganisation.guid(100 * (number - 10) + 1))", "projectElement": "\(name).1",
                 "description": "Work"}]}
                """
        }
        let body = #"{"people": [], "customers": [], "projects": [\#(list.joined(separator: ","))]}"#
        try await suite.post("/sandbox/organisation", Data(body.utf8))
    }

    // MARK: Reading

    /// Waits for a status, which the newest line of the log tells too.
    func expect(_ entry: UUID, _ status: EntryStatus) async throws {
        try await eventually("\(entry) is \(status)", within: .seconds(40)) {
            guard let found = try entries()[entry], found.status == status else {
                return "\(String(describing: try entries()[entry]?.status))"
            }
            let lines = try lines(of: entry)
            return lines.max { $0.timestamp < $1.timestamp }?.status == status && found.backendId != nil
                ? nil : "\(lines)"
        }
    }

    func entries() throws -> [UUID: TimeEntry] {
        var found: [UUID: TimeEntry] = [:]
        for (id, json) in try objects("TimeEntry") { found[id] = try JSONDecoder().decode(TimeEntry.self, from: json) }
        return found
    }

    private func lines(of entry: UUID) throws -> [TimeEntryStatus] {
        try objects("TimeEntryStatus").map { try JSONDecoder().decode(TimeEntryStatus.self, from: $0.json) }
            .filter { $0.entry == entry }
    }

    private func objects(_ kind: String) throws -> [(id: UUID, json: Data)] {
        var connection = try Connection(suite.conninfo)
        let rows = try connection.run(
            "SELECT id, fields::text FROM realm.object WHERE kind = \(kind) AND NOT deleted")
        return try rows.map { (try $0.value(0), Data(try $0.value(1, as: String.self).utf8)) }
    }

    /// The projects whose accounting codes the person may choose.
    func elements() throws -> Set<String> {
        var writer = try RealmWriter(suite.conninfo)
        return Set(try writer.choices(of: person.email).selections.map { String($0.element.prefix(2)) })
    }

    /// The newest positions of all objects but the polls.
    func positions() throws -> Int64 {
        var connection = try Connection(suite.conninfo)
        return try connection.run("SELECT max(position) FROM realm.object WHERE kind <> 'Poll'")[0].value(0)
    }

    /// Waits until that many more runs are done for both people.
    func waitForRuns(_ count: Int64) async throws {
        func finished() throws -> Int64 {
            var connection = try Connection(suite.conninfo)
            return try connection.run("SELECT min(run) FROM poll.finished")[0].value(0)
        }
        let first = try finished()
        try await eventually("\(count) runs are done", within: .seconds(60)) {
            let now = try finished()
            return now >= first + count ? nil : "\(first), now \(now)"
        }
    }
}
