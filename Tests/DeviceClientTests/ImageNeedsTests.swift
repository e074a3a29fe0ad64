import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The images that a device fetches, sends and stores.
@Suite(.ownThreads) struct ImageNeedsTests {
    private typealias Held = HeldContents

    private let avatar = Held.id(3)
    private let image = Held.id(4)

    private func device(_ kind: Kind, _ fields: String) -> DeviceState {
        var device = DeviceState(clientID: UUID())
        _ = device.take(.open(.common, isReset: true))
        let object = DeviceObject(position: 3, fields: Array(fields.utf8))
        _ = device.take(.objects(.common, cursor: nil, [.init(id: ObjectID(kind: kind, id: Held.ana), object: object)]))
        _ = device.take(.checkpoint(position: 3, cursor: "3", cursors: [:]))
        return device
    }

    private func patch(_ fields: String) -> Mutation {
        Mutation(operation: .patch, kind: .person, id: Held.ana, fields: Array(fields.utf8))
    }

    /// Each kind has its own image field.
    @Test(arguments: Kind.allCases) func referencedUnstoredImageIsMissing(kind: Kind) {
        let device = device(kind, #"{"avatar":"\#(avatar.text)","image":"\#(image.uuidString)"}"#)
        let named = ["avatar": avatar, "image": image].filter { kind.fieldNames.contains($0.key) }
        let needs = ImageNeeds(of: device, held: [])
        #expect(needs.missing == Set(named.values) && needs.unneeded.isEmpty && needs.unsent.isEmpty)
        let held = ImageNeeds(of: device, held: [avatar, image])
        #expect(held.missing.isEmpty && held.unneeded == Set([avatar, image]).subtracting(named.values))
    }

    @Test(arguments: ["{}", #"{"avatar":null}"#, #"{"avatar":"picture"}"#, #"{"avatar":[7]}"#, "", "[]"])
    func objectWithoutImageNeedsNone(fields: String) {
        let needs = ImageNeeds(of: device(.person, fields), held: [avatar])
        #expect(needs.missing.isEmpty && needs.unsent.isEmpty && needs.unneeded == [avatar])
    }

    /// The person chooses a picture offline, and then another one.
    @Test func imageIsSentBeforeItsMutation() throws {
        let (first, second) = (Held.id(5), Held.id(6))
        var device = device(.person, #"{"avatar":"\#(avatar.text)"}"#)
        _ = try device.enqueue(patch(#"{"name":"Ana"}"#), in: .common)
        _ = try device.enqueue(patch(#"{"avatar":"\#(first.text)"}"#), in: .common)
        _ = try device.enqueue(patch(#"{"avatar":"\#(second.text)"}"#), in: .common)
        let waiting = ImageNeeds(of: device, held: [avatar, first, second])
        #expect(waiting.unsent == [first, second] && waiting.missing.isEmpty)
        #expect(waiting.unneeded == [avatar], "the first image's mutation is still waiting")
        // Another device with the same state stores none of them, and sends none.
        let other = ImageNeeds(of: device, held: [])
        #expect(other.missing == [second] && other.unsent.isEmpty)

        let next = device.nextRequest()
        let request = try #require(next)
        let outcomes: [Int64: MutationOutcome] = [
            1: .accepted(position: 4), 2: .accepted(position: 4), 3: .rejected(code: "read-only", detail: ""),
        ]
        _ = device.take(.results(outcomes, expectedSequence: 4), to: request, newClientID: UUID())
        let answered = ImageNeeds(of: device, held: [avatar, first, second])
        #expect(answered.unsent.isEmpty && answered.missing.isEmpty && answered.unneeded == [avatar, second])
    }
}
