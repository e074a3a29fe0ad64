import BackendProtocol
import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Testing

extension FlowTests {
    /// Databases, events, cursors and queued mutations of an earlier build, whose texts used other terms, keep working.
    @Test(.timeLimit(.minutes(20))) func recordedDataOfAnEarlierBuildKeepsWorking() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("recording-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withCluster("recording", Recording.options(schemaFolder: folder)) { cluster in
            let flow = RecordingFlow(cluster: cluster, recording: try Recording())
            try await flow.recording.restore(into: cluster)
            try await cluster.startAll([.gateway])
            var phones = try await [flow.recording.phone(1, of: cluster), flow.recording.phone(2, of: cluster)]
            for index in phones.indices { try await flow.expectCursorsContinue(&phones[index]) }
            try await flow.sendQueue(of: &phones[0])
            let outcomes = try await phones[1].send()
            #expect(outcomes.count == 1 && outcomes.values.allSatisfy(\.isAccepted), "\(outcomes)")

            try await cluster.startAll([.relay, .initializer, .submitter, .taskFanOut, .shareFanOut])
            try await flow.expectEntries()
            try await flow.retryDeadLetteredKey()
            try await flow.changeTask()
            try await flow.expectContents(of: &phones)
            try flow.expectNothingWasRepublished()
        }
    }
}

extension MutationOutcome {
    fileprivate var isAccepted: Bool {
        if case .accepted = self { true } else { false }
    }
}

/// The steps of the test, in order.
private struct RecordingFlow {
    let cluster: LocalCluster
    let recording: Recording

    /// Entries that end in the back end.
    private var submitted: [UUID] {
        let ids = recording.ids
        return [ids.released, ids.submitted, ids.draft, ids.unconsumed, ids.unpublished, ids.queued]
    }

    /// The stream has only changes after the cursors, and resets no realm.
    func expectCursorsContinue(_ phone: inout RecordedPhone) async throws {
        try await eventually("the gateway has \(phone.realm)") {
            let status = try await phone.phone.status()
            return status == 200 ? nil : "\(status)"
        }
        let (saved, before) = (phone.device.copy.position, phone.device.copy.contents)
        #expect(saved > 0 && !before.isEmpty)
        for line in try await phone.sync() {
            switch line {
            case .open(let realm, let isReset): #expect(!isReset, "\(realm)")
            case .objects(_, _, let changes):
                for change in changes { #expect((change.object?.position ?? .max) > saved, "\(change.id)") }
            case .closed(let realm): Issue.record("\(realm) is closed")
            case .checkpoint, .keepalive: break
            }
        }
        #expect(phone.device.copy.contents.mapValues(\.count) == before.mapValues(\.count))
    }

    /// Repeated mutations get the stored results, with the code of that time, and the others are applied.
    func sendQueue(of phone: inout RecordedPhone) async throws {
        let ids = recording.ids
        let sequences = phone.device.queue.storedMutations.suffix(4).map(\.sequence)
        let stored = try #require(phone.device.copy.objects(of: .timeEntry).first { $0.id == ids.draft }).object
            .position
        var outcomes = try await phone.send()
        #expect(outcomes.keys.sorted() == sequences)
        let results = sequences.map { outcomes[$0] }
        #expect(results[0] == .accepted(position: stored), "\(results)")
        guard case .rejected(code: "position-passed", detail: _) = results[1] else {
            Issue.record("\(results)")
            return
        }
        #expect(results.dropFirst(2).allSatisfy { $0?.isAccepted == true }, "\(results)")
        // The same rejection has another code today.
        try phone.enqueue(
            Mutation(
                operation: .patch, kind: .timeEntry, id: ids.draft, fields: Array(#"{"text":"stale"}"#.utf8),
                position: 1))
        outcomes = try await phone.send()
        guard case .rejected(code: "version-conflict", detail: _) = outcomes.values.first else {
            Issue.record("\(outcomes)")
            return
        }
    }

    /// Every entry reaches its final status, with one record in the back end.
    func expectEntries() async throws {
        let ids = recording.ids
        try await expect(.released, submitted.filter { $0 != ids.submitted })
        try await expect(.invalid, [ids.invalid])
        // SAP has its record, which an approver releases.
        try await expect(.submitted, [ids.submitted])
        let record = try #require(try await records(of: ids.submitted).first)
        let approval = #"{"record": "\#(record.record)", "status": "20"}"#
        try await cluster.post("/sandbox/approvals", Data(approval.utf8))
        try await expect(.released, [ids.submitted])
        for id in submitted {
            let records = try await records(of: id)
            #expect(records.count == 1 && records.allSatisfy(\.isLive), "\(records)")
        }
        #expect(try await cluster.recorded().count == submitted.count)
    }

    private func expect(_ status: EntryStatus, _ ids: [UUID]) async throws {
        try await eventually("\(ids.count) entries are \(status)") {
            var connection = try Connection(cluster.conninfo)
            let found = try connection.run(
                """
                SELECT coalesce(fields::json->>'status', 'no status') FROM store.object
                WHERE id = ANY (\(ids)) AND NOT deleted
                """
            ).decode(String.self)
            return found == ids.map { _ in status.rawValue } ? nil : "\(found)"
        }
    }

    private func records(of id: UUID) async throws -> [Recorded] {
        try await cluster.recorded().filter { $0.note.hasSuffix(EntryMarker.marker(of: id)) }
    }

    /// The realm of a person whom the back end did not have is filled once the person is added.
    func retryDeadLetteredKey() async throws {
        struct Row: Decodable { let key, state: String }
        // The new broker has no offsets of the group: it reads the event of the key again, which retries the key.
        try await eventually("all events of realms are processed") {
            let (end, lag) = try await cluster.lag(of: Services.realmInitializer.name)
            return end > 0 && lag == 0 ? nil : "\(lag) of \(end)"
        }
        let list = try await cluster.runCommand(["deferred", "list", "--dead", "--json"])
        let rows = try JSONDecoder().decode([Row].self, from: Data(list.utf8))
        try #require(rows.count == 1, "\(list)")
        let person = SmallOrganisation(peopleCount: 3).people[2]
        let file = cluster.folder.path + "/people.json"
        let people = """
            [{"email": "\(person.email)", "reference": {"personWorkAgreementExternalId": "\(person.agreement)",
              "companyCode": "1010", "businessPartnerUuid": "\(person.partner)"}}]
            """
        try Data(people.utf8).write(to: URL(filePath: file))
        try await cluster.runCommand(["environment", "edit", Recording.environment, "--people", file])
        try await cluster.runCommand(["deferred", "retry", rows[0].key, "--wait", "240"])
        try await eventually("the third realm is filled") {
            var writer = try RealmWriter(cluster.conninfo)
            let count = try writer.initializedCount()
            return count == 3 ? nil : "\(count)"
        }
        #expect(try await cluster.runCommand(["deferred", "list", "--json"]).contains("[\n\n]"))
    }

    /// The stored key of an integration opens `/manager`, and the change arrives in the copy.
    func changeTask() async throws {
        let body = """
            {"clientId":"\(UUID())","mutations":[{"sequence":1,"realm":"/manager","op":"patch","kind":"FieldTask",
            "id":"\(recording.ids.task.text)","fields":{"title":"Meter, third floor"}}]}
            """
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(
            Request(
                "POST", cluster.gatewayURL + "/v1/mutations",
                headers: [
                    ("Authorization", "Bearer \(recording.ids.integrationKey)"), ("Content-Type", "application/json"),
                ], body: Array(body.utf8)))
        #expect(String(decoding: response.body, as: UTF8.self).contains("accepted"))
    }

    /// The devices' copies continue to the same contents, with each status once in the log of an entry.
    func expectContents(of phones: inout [RecordedPhone]) async throws {
        let ids = recording.ids
        try await eventually("the copies of tasks and notes arrive") {
            try await phones[1].sync()
            let titles = try phones[1].objects(.fieldTask, ids.task).map { $0["title"] as? String }
            let (first, second) = (
                try phones[1].objects(.note, ids.note).count, try phones[1].objects(.note, ids.secondNote).count
            )
            return titles == ["Meter, third floor"] && first == 1 && second == 1
                ? nil : "\(titles), \(first) and \(second) notes"
        }
        try await phones[0].sync()
        for (phone, own) in zip(phones, [submitted.filter { $0 != ids.submitted }, [ids.submitted]]) {
            let lines = try phone.objects(.timeEntryStatus)
            for id in own {
                let statuses = lines.filter { $0["entry"] as? String == id.text }.compactMap { $0["status"] as? String }
                #expect(statuses.sorted() == ["draft", "released", "submitted"], "\(id): \(statuses)")
                #expect(try phone.objects(.timeEntry, id).map { $0["status"] as? String } == ["released"])
            }
        }
        let draft = try #require(try phones[0].objects(.timeEntry, ids.draft).first)
        #expect(draft["text"] as? String == "draft, edited")
        #expect(try phones[1].objects(.note, ids.thirdNote).count == 1)
    }

    /// The services have continued with the recorded topics: no epoch began.
    func expectNothingWasRepublished() throws {
        var connection = try Connection(cluster.conninfo)
        let epochs = try connection.run("SELECT DISTINCT epoch FROM realm.relay").decode(Int64.self)
        #expect(epochs == [1])
    }
}
