import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The objects that a device shows while mutations are pending.
@Suite(.ownThreads) struct DeviceStateTests {
    private let realm: RealmPath
    private let entry = ObjectID(kind: .timeEntry, id: UUID())

    init() throws { realm = try RealmPath.user("ana@example.com") }

    @Test func mutationIsShownUntilItsCheckpoint() throws {
        var device = device(holding: #"{"status":"draft","text":"a","durationSeconds":60}"#)
        _ = try device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        #expect(shown(device) == #"{"status":"draft","text":"b","durationSeconds":60}"#)
        complete(&device, .accepted(position: 9))
        #expect(
            shown(device) == #"{"status":"draft","text":"b","durationSeconds":60}"#, "the copy does not contain it yet")
        _ = device.take(.checkpoint(position: 8, cursor: "8", cursors: [:]))
        #expect(device.hasUnconfirmedChanges(ObjectAddress(realm, entry)))
        _ = device.take(.checkpoint(position: 9, cursor: "9", cursors: [:]))
        #expect(
            shown(device) == #"{"status":"draft","text":"a","durationSeconds":60}"#,
            "the copy contains it or a newer version")
        #expect(!device.hasUnconfirmedChanges(ObjectAddress(realm, entry)))
    }

    /// The checkpoint came before the result, and another user's change was later.
    @Test func resultAfterItsCheckpointIsReportedAsChange() throws {
        var device = device(holding: #"{"text":"a"}"#)
        _ = try device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        _ = device.take(.checkpoint(position: 20, cursor: "20", cursors: [:]))
        #expect(shown(device) == #"{"text":"b"}"#)
        let update = complete(&device, .accepted(position: 12))
        #expect(shown(device) == #"{"text":"a"}"#)
        #expect(update.changed == [ObjectAddress(realm, entry)])
    }

    @Test func removalWithMutationIsReportedAsChange() throws {
        var device = device(holding: #"{"text":"a"}"#)
        let other = ObjectAddress(realm, ObjectID(kind: .timeEntry, id: UUID()))
        _ = try device.enqueue(
            Mutation(operation: .put, kind: .timeEntry, id: other.object.id, fields: Array(#"{"text":"c"}"#.utf8)),
            in: realm)
        _ = complete(&device, .accepted(position: 12))
        #expect(device[realm, other.object] != nil)
        let update = device.take(.checkpoint(position: 20, cursor: "20", cursors: [:]))
        #expect(device[realm, other.object] == nil && update.changed.contains(other))
    }

    @Test func rejectedMutationIsNotShown() throws {
        var device = device(holding: #"{"text":"a"}"#)
        _ = try device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        _ = try device.enqueue(mutation(.patch, #"{"durationSeconds":60}"#), in: realm)
        let update = complete(&device, .rejected(code: "closed", detail: "it is closed"))
        #expect(update.answers.map(\.outcome) == [.rejected(code: "closed", detail: "it is closed")])
        #expect(update.changed == [ObjectAddress(realm, entry)])
        #expect(shown(device) == #"{"text":"a","durationSeconds":60}"#)
    }

    @Test(arguments: [
        (
            #"{"status":"draft","text":"a","submitRequested":true}"#, #"{"durationSeconds":1}"#,
            #"{"status":"draft","text":null,"submitRequested":true,"durationSeconds":1}"#
        ),
        (#"{"backendId":"7","statusAt":"x"}"#, #"{"text":"b"}"#, #"{"backendId":"7","statusAt":"x","text":"b"}"#),
    ])
    func putReplacesDeviceOwnedFields(before: String, put: String, after: String) throws {
        var device = device(holding: before)
        _ = try device.enqueue(mutation(.put, put), in: realm)
        #expect(shown(device) == after)
    }

    @Test(arguments: [
        (#"{"text":"a"}"#, nil), (#"{"status":"suggestion"}"#, nil), (#"{"status":"invalid"}"#, nil),
        (#"{"status":"invalid","backendId":"7"}"#, #"{"status":"invalid","backendId":"7","deleteRequested":true}"#),
        (#"{"status":"released"}"#, #"{"status":"released","deleteRequested":true}"#),
    ])
    func entryInBackEndIsNotDeletedImmediately(before: String, after: String?) throws {
        var device = device(holding: before)
        _ = try device.enqueue(mutation(.delete, nil), in: realm)
        #expect(shown(device) == after)
    }

    @Test func patchOfMissingObjectShowsNothing() throws {
        var device = DeviceState(clientID: UUID())
        _ = try device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        #expect(shown(device) == nil)
        #expect(device.content(of: realm).isEmpty)
    }

    @Test func streamRequestNamesAllRealms() {
        var device = DeviceState(clientID: UUID())
        #expect(String(decoding: device.syncRequest(isLive: true), as: UTF8.self) == #"{"live":true}"#)
        _ = device.take(.open(realm, isReset: true))
        _ = device.take(.objects(realm, cursor: "1:9:0:a", []))
        _ = device.take(.open(.common, isReset: true))
        #expect(
            String(decoding: device.syncRequest(isLive: false), as: UTF8.self)
                == #"{"live":false,"realms":{"/common":null,"/users/ana@example.com":"1:9:0:a"}}"#)
    }

    /// The server could not read the request, which would block later mutations.
    @Test(arguments: [
        (#"{"text":"b""#, JSONError.Reason.endsEarly), ("[1]", .notAnObject), ("", .notAnObject),
        (#"{"text":"a","text":"b"}"#, .duplicateKey), (#"{"text":"b"},{"#, .trailing),
        (##"{"text":"\u0000"}"##, .nullCharacter),
    ])
    func invalidFieldsAreNotQueued(fields: String, reason: JSONError.Reason) throws {
        var device = device(holding: #"{"text":"a"}"#)
        let wrong = mutation(.patch, fields)
        let error = #expect(throws: InvalidMutation.self) { try device.enqueue(wrong, in: realm) }
        guard case .fieldsNotJSON(let problem) = error?.reason else {
            Issue.record("\(error.debugDescription)")
            return
        }
        #expect(problem.reason == reason && error?.mutation == wrong)
        #expect(error?.description == "the fields of TimeEntry \(entry.id.text): \(problem)")
        #expect(shown(device) == #"{"text":"a"}"# && device.nextRequest() == nil)
    }

    @Test func oversizedFieldsAreNotQueued() throws {
        var device = device(holding: #"{"text":"a"}"#)
        let room = Kind.timeEntry.fieldsBytesMax - #"{"text":""}"#.utf8.count
        let largest = mutation(.patch, "{\"text\":\"\(String(repeating: "b", count: room))\"}")
        let larger = mutation(.patch, "{\"text\":\"\(String(repeating: "b", count: room + 1))\"}")
        _ = try device.enqueue(largest, in: realm)
        let error = #expect(throws: InvalidMutation.self) { try device.enqueue(larger, in: realm) }
        #expect(error?.reason == .fieldsTooLarge(bytes: 65_537, bytesMax: 65_536))
        #expect(error?.description.hasSuffix("they have 65537 bytes; at most 65536 are allowed") == true)
        #expect(device.queue.count == 1)
    }

    @Test func streamRequestIsLimitedToServersMaximum() throws {
        var device = DeviceState(clientID: UUID())
        for _ in 0..<1_001 { _ = device.take(.open(.team(UUID()), isReset: true)) }
        _ = device.take(.checkpoint(position: 5, cursor: "5", cursors: [:]))
        let body = try JSONObject(device.syncRequest(isLive: true))
        let realms = try JSONObject(Array(try #require(body.value(of: "realms"))), memberCountMax: 1_001)
        #expect(realms.members.count == 1_000)
    }

    // MARK: Helpers

    private func device(holding fields: String) -> DeviceState {
        var device = DeviceState(clientID: UUID())
        _ = device.take(.open(realm, isReset: true))
        let object = DeviceObject(position: 3, fields: Array(fields.utf8))
        _ = device.take(.objects(realm, cursor: "c", [SyncLine.Change(id: entry, object: object)]))
        _ = device.take(.checkpoint(position: 5, cursor: "5", cursors: [:]))
        return device
    }

    private func mutation(_ operation: Mutation.Operation, _ fields: String?) -> Mutation {
        Mutation(operation: operation, kind: entry.kind, id: entry.id, fields: fields.map { Array($0.utf8) })
    }

    private func shown(_ device: DeviceState) -> String? {
        device[realm, entry].map { String(decoding: $0.fields, as: UTF8.self) }
    }

    /// Completes the oldest waiting mutation with a result.
    @discardableResult
    private func complete(_ device: inout DeviceState, _ outcome: MutationOutcome) -> DeviceState.Update {
        guard let request = device.nextRequest(countMax: 1), let item = request.mutations.first else {
            Issue.record("nothing to send")
            return DeviceState.Update()
        }
        let response = QueueResponse.results([item.sequence: outcome], expectedSequence: item.sequence + 1)
        return device.take(response, to: request, newClientID: UUID())
    }
}
