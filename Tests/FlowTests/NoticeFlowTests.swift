import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// Notices of all codes, from what others do to the person's webhook. The person is in quiet hours: the notices
    /// appear on the device, and are sent afterwards, except those that the person excluded.
    @Test(.timeLimit(.minutes(20))) func noticesOfEverySortAreSentAsTheirPersonChose() async throws {
        let receivers = try NoticeReceivers()
        var options = LocalCluster.Options.quick
        options.services =
            LocalCluster.Part.entryServices + [.poller, .taskFanOut, .shareFanOut, .defectNotifier, .noticeDeliverer]
        options.emulators.append(.compass)
        options.variables[.noticeDeliverer, default: [:]]["FIELDPOST_DELIVERER_CA_FILE"] = receivers.certificateFile
        try await withCluster("notices", options) { cluster in
            try await ScenarioBackend.sap.load(into: cluster)
            try await SharedCluster.$cluster.withValue(cluster) {
                try await Scenario.run(.sap, "draft") { worker in
                    try await Scenario.run(.sap, "log") { manager in
                        var flow = try await NoticeFlow(worker, manager, receivers)
                        try await flow.run()
                    }
                }
            }
        }
    }
}

/// A worker who gets notices, and the manager and the systems that cause them.
private struct NoticeFlow {
    private static let environment = ScenarioBackend.sap.rawValue
    private static let excluded: [Notice.Code] = [.taskChanged, .itemShared]

    let cluster: LocalCluster
    let worker: Scenario
    let receivers: NoticeReceivers
    let compass: CompassSide
    /// The worker's `Person`.
    let person: UUID
    var ana: DefectPhone
    var boss: DefectPhone
    /// The number of the notices so far by code.
    var expected: [String: Int] = [:]

    init(_ worker: Scenario, _ manager: Scenario, _ receivers: NoticeReceivers) async throws {
        cluster = worker.cluster
        self.worker = worker
        self.receivers = receivers
        compass = CompassSide(cluster: cluster)
        person = try await FlowTests.person(worker.phone)
        ana = try await DefectPhone(cluster, worker.email, issuer: Self.environment)
        boss = try await DefectPhone(cluster, manager.email, issuer: Self.environment)
        try await FlowTests.makeManager(manager.phone)
    }

    mutating func run() async throws {
        try await offerWebhooks()
        var choice = DeliveryChoice(
            webhook: receivers.webURL + "/hook/worker", quietHours: Self.hoursAroundNow(), excludedCodes: Self.excluded)
        try await choose(choice)
        try await causeTasks()
        try await causeShares()
        try await causeEntries()
        try await causeDefects()
        #expect(Set(expected.keys) == Set(Notice.Code.all.map(\.rawValue)), "every code has a cause")

        let (flow, total) = (self, chosen.values.reduce(0, +))
        try await eventually("\(total) notices wait for the end of the quiet hours") {
            let (waiting, deferred) = try flow.waitingCounts()
            return waiting == total && deferred == 1 ? nil : "\(waiting) wait, \(deferred) keys"
        }
        #expect(try receivers.received().isEmpty)

        // The next notice shows the deliverer the new choice.
        choice.quietHours = nil
        try await choose(choice)
        try boss.enqueue(.put, .fieldTask, UUID(), FieldTask(title: "Last", assignee: person), in: .manager)
        try await boss.send()
        try await expect([.taskAssigned: 1])
        let sent = chosen
        try await eventually("the notices are sent", within: .seconds(120)) {
            let found = try flow.received()
            return found == sent ? nil : "\(found)"
        }
    }

    /// The expected numbers without the excluded codes.
    private var chosen: [String: Int] {
        expected.filter { !Self.excluded.contains(Notice.Code(rawValue: $0.key)) }
    }

    // MARK: Choices

    private func offerWebhooks() async throws {
        try await cluster.runCommand([
            "environment", "deliveries", "set", Self.environment, "--webhook-host", "127.0.0.1", "--private-addresses",
        ])
        try receivers.set(
            secret: try await cluster.runCommand(["environment", "deliveries", "secret", Self.environment]))
    }

    private mutating func choose(_ choice: DeliveryChoice) async throws {
        try ana.enqueue(.put, .deliveryChoice, person, choice)
        try await ana.send()
    }

    /// Quiet hours in UTC that began an hour ago and last longer than the test.
    private static func hoursAroundNow() -> String {
        let minute = Int(Date().timeIntervalSince1970) / 60
        return [minute - 60, minute + 120].map { minute in
            String(format: "%02d:%02d", minute / 60 % 24, minute % 60)
        }.joined(separator: "-")
    }

    // MARK: Causes

    /// Adds to the expected notices, and waits for them.
    private mutating func expect(_ more: [Notice.Code: Int]) async throws {
        for (code, count) in more { expected[code.rawValue, default: 0] += count }
        try await FlowTests.expectNotices(ana, expected)
    }

    private mutating func causeTasks() async throws {
        let (pipe, valve) = (UUID(), UUID())
        let soon = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000) + 3_000)
        try boss.enqueue(.put, .fieldTask, pipe, FieldTask(title: "Pipe", assignee: person), in: .manager)
        try boss.enqueue(
            .put, .fieldTask, valve, FieldTask(title: "Valve", dueDate: soon, assignee: person), in: .manager)
        try await boss.send()
        try await expect([.taskAssigned: 2, .taskOverdue: 1])
        try boss.enqueue(.patch, .fieldTask, pipe, ["title": "Tube"], in: .manager)
        try await boss.send()
        try await expect([.taskChanged: 1])
        try boss.enqueue(.delete, .fieldTask, pipe, in: .manager)
        try await boss.send()
        try await expect([.taskRemoved: 1])
    }

    private mutating func causeShares() async throws {
        let notes = [UUID(), UUID()]
        for note in notes {
            try boss.enqueue(.put, .note, note, Note(title: "Note"))
            try boss.enqueue(
                .put, .sharedItem, SharedItem.id(of: note, with: person),
                SharedItem(kind: .note, item: note, recipient: person))
        }
        try await boss.send()
        try await expect([.itemShared: 2])
        try boss.enqueue(.delete, .sharedItem, SharedItem.id(of: notes[0], with: person))
        try boss.enqueue(.delete, .note, notes[1])
        try await boss.send()
        try await expect([.shareCancelled: 1, .itemDeleted: 1])
    }

    private mutating func causeEntries() async throws {
        _ = try await worker.submit(#""durationSeconds":0"#, project: nil)
        try await expect([.entryInvalid: 1])
        let entry = try await worker.submit()
        try await worker.expect(entry, .released)
        let record = try await worker.record(of: entry).id
        try await worker.post("/sandbox/records", #"{"records": [{"record": "\#(record)", "hundredths": 250}]}"#)
        try await expect([.entryChanged: 1])
        try await worker.move(record, to: .rejected)
        try await expect([.entryRejected: 1])
    }

    private mutating func causeDefects() async throws {
        try await compass.post(
            "/sandbox/organisation",
            #"{"users": [{"name": "ana", "password": "secret-of-ana"}, {"name": "bo", "password": "secret-of-bo"}]}"#)
        let logins = cluster.folder.path + "/logins.json"
        try Data(#"{"\#(worker.email)": "ana"}"#.utf8).write(to: URL(filePath: logins))
        try await cluster.runCommand([
            "environment", "defects", "add", Self.environment, "--server", cluster.compassURL, "--repository",
            "CCMRepo", "--user-database", "SAMPL", "--user", "fieldpost", "--password-from",
            LocalCluster.passwordVariable, "--poll-interval", "5",
        ])
        try await cluster.runCommand(["environment", "defects", "logins", Self.environment, "--file", logins])
        // Changes before the first poll cause no notices.
        let flow = self
        try await eventually("the tracker is polled") {
            try flow.count("SELECT count(*) FROM defect.watermark") > 0 ? nil : "not yet"
        }
        try await compass.post(
            "/sandbox/changes",
            #"[{"user": "bo", "fields": {"Headline": "Leak", "Severity": "3-Average", "Owner": "ana"}}]"#)
        try await expect([.defectAssigned: 1])
        try await compass.post(
            "/sandbox/changes",
            #"[{"record": "SAMPL00000001", "user": "bo", "action": "Modify", "fields": {"Severity": "1-Critical"}}]"#)
        try await expect([.defectModified: 1])
    }

    // MARK: Results

    private func count(_ statement: Statement) throws -> Int {
        var connection = try Connection(cluster.conninfo)
        return Int(try connection.run(statement)[0].value(0, as: Int64.self))
    }

    /// The waiting rows, and the keys that the deliverer has processed and deferred.
    private func waitingCounts() throws -> (waiting: Int, deferred: Int) {
        (
            try count("SELECT count(*) FROM delivery.shipment WHERE state = 'waiting'"),
            try count(
                """
                SELECT count(*) FROM pipeline.parked
                WHERE group_name = \(Services.noticeDeliverer.name) AND next_at > now()
                """)
        )
    }

    /// The numbers of received notices by code. Repeated deliveries have the same id.
    private func received() throws -> [String: Int] {
        struct Body: Decodable {
            struct Notice: Decodable { let code: String }
            let data: Notice
        }
        let all = try receivers.received()
        #expect(all.allSatisfy { $0.kind == "webhook" }, "\(all)")
        var codes: [String: String] = [:]
        for one in all {
            let id = try #require(one.headers["webhook-id"])
            codes[id] = try JSONDecoder().decode(Body.self, from: Data(one.text.utf8)).data.code
        }
        return Dictionary(codes.values.map { ($0, 1) }, uniquingKeysWith: +)
    }
}
