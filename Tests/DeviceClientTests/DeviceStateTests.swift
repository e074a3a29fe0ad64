import DeviceClient
import Essentials
import FoundationEssentials
import Model
import Testing

/// What a device shows of what is on its way.
@Suite struct DeviceStateTests {
    private let realm: RealmPath
    private let entry = ObjectID(kind: .timeEntry, id: UUID())

    init() throws { realm = try RealmPath.user("ana@example.com") }

    @Test func aMutationIsShownUntilACheckpointHasIt() throws {
        var device = device(holding: #"{"status":"draft","text":"a","durationSeconds":60}"#)
        _ = device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        #expect(shown(device) == #"{"status":"draft","text":"b","durationSeconds":60}"#)
        answer(&device, .accepted(position: 9))
        #expect(shown(device) == #"{"status":"draft","text":"b","durationSeconds":60}"#, "it is not in the copy yet")
        _ = device.take(.checkpoint(position: 8, cursor: "8", cursors: [:]))
        #expect(device.isUnsettled(ObjectAddress(realm, entry)))
        _ = device.take(.checkpoint(position: 9, cursor: "9", cursors: [:]))
        #expect(shown(device) == #"{"status":"draft","text":"a","durationSeconds":60}"#, "the copy has it, or newer")
        #expect(!device.isUnsettled(ObjectAddress(realm, entry)))
    }

    /// The stream was quicker than the answer, and somebody else was later.
    @Test func anAnswerAfterItsCheckpointIsToldAsAChange() throws {
        var device = device(holding: #"{"text":"a"}"#)
        _ = device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        _ = device.take(.checkpoint(position: 20, cursor: "20", cursors: [:]))
        #expect(shown(device) == #"{"text":"b"}"#)
        let news = answer(&device, .accepted(position: 12))
        #expect(shown(device) == #"{"text":"a"}"#)
        #expect(news.changed == [ObjectAddress(realm, entry)])
    }

    @Test func anObjectThatGoesWithItsMutationIsToldAsAChange() throws {
        var device = device(holding: #"{"text":"a"}"#)
        let other = ObjectAddress(realm, ObjectID(kind: .timeEntry, id: UUID()))
        _ = device.enqueue(
            Mutation(operation: .put, kind: .timeEntry, id: other.object.id, fields: Array(#"{"text":"c"}"#.utf8)),
            in: realm)
        _ = answer(&device, .accepted(position: 12))
        #expect(device[realm, other.object] != nil)
        let news = device.take(.checkpoint(position: 20, cursor: "20", cursors: [:]))
        #expect(device[realm, other.object] == nil && news.changed.contains(other))
    }

    @Test func aRejectedMutationFallsOut() throws {
        var device = device(holding: #"{"text":"a"}"#)
        _ = device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        _ = device.enqueue(mutation(.patch, #"{"durationSeconds":60}"#), in: realm)
        let news = answer(&device, .rejected(code: "closed", detail: "it is closed"))
        #expect(news.answers.map(\.outcome) == [.rejected(code: "closed", detail: "it is closed")])
        #expect(news.changed == [ObjectAddress(realm, entry)])
        #expect(shown(device) == #"{"text":"a","durationSeconds":60}"#)
    }

    @Test(arguments: [
        (
            #"{"status":"draft","text":"a","submitRequested":true}"#, #"{"durationSeconds":1}"#,
            #"{"status":"draft","text":null,"submitRequested":true,"durationSeconds":1}"#
        ),
        (#"{"backendId":"7","statusAt":"x"}"#, #"{"text":"b"}"#, #"{"backendId":"7","statusAt":"x","text":"b"}"#),
    ])
    func aPutReplacesWhatIsTheDevices(before: String, put: String, after: String) {
        var device = device(holding: before)
        _ = device.enqueue(mutation(.put, put), in: realm)
        #expect(shown(device) == after)
    }

    @Test(arguments: [
        (#"{"text":"a"}"#, nil), (#"{"status":"suggestion"}"#, nil), (#"{"status":"invalid"}"#, nil),
        (#"{"status":"invalid","backendId":"7"}"#, #"{"status":"invalid","backendId":"7","deleteRequested":true}"#),
        (#"{"status":"released"}"#, #"{"status":"released","deleteRequested":true}"#),
    ])
    func anEntryThatABackEndMayKnowIsNotGoneAtOnce(before: String, after: String?) {
        var device = device(holding: before)
        _ = device.enqueue(mutation(.delete, nil), in: realm)
        #expect(shown(device) == after)
    }

    @Test func aPatchOfNothingShowsNothing() {
        var device = DeviceState(clientID: UUID())
        _ = device.enqueue(mutation(.patch, #"{"text":"b"}"#), in: realm)
        #expect(shown(device) == nil)
        #expect(device.content(of: realm).isEmpty)
    }

    @Test func theRequestOfAStreamNamesAllThatIsHeld() {
        var device = DeviceState(clientID: UUID())
        #expect(String(decoding: device.syncRequest(isLive: true), as: UTF8.self) == #"{"live":true}"#)
        _ = device.take(.open(realm, isReset: true))
        _ = device.take(.objects(realm, cursor: "1:9:0:a", []))
        _ = device.take(.open(.common, isReset: true))
        #expect(
            String(decoding: device.syncRequest(isLive: false), as: UTF8.self)
                == #"{"live":false,"realms":{"/common":null,"/users/ana@example.com":"1:9:0:a"}}"#)
    }

    // MARK: Helpers

    private func device(holding fields: String) -> DeviceState {
        var device = DeviceState(clientID: UUID())
        _ = device.take(.open(realm, isReset: true))
        let object = HeldObject(position: 3, fields: Array(fields.utf8))
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

    /// Answers the oldest mutation that waits.
    @discardableResult
    private func answer(_ device: inout DeviceState, _ outcome: MutationOutcome) -> DeviceState.News {
        guard let request = device.nextRequest(countMax: 1), let item = request.mutations.first else {
            Issue.record("nothing to send")
            return DeviceState.News()
        }
        let answer = QueueAnswer.results([item.sequence: outcome], expectedSequence: item.sequence + 1)
        return device.take(answer, to: request, newClientID: UUID())
    }
}
