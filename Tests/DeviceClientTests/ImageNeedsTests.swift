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

    private struct Inspection: OwnObject {
        static let kindName = "Inspection"
        static let blobPaths: [[FieldStep]] = [
            [.member("photos"), .each], [.member("receipt")], [.member("steps"), .others(["site"]), .member("image")],
        ]
        let fields: [String: FieldJSON]
    }

    @Test func imagesOfOwnKindsAreFoundByTheirTypes() throws {
        let kind = try #require(Kind(named: Inspection.kindName))
        let ids = (5...9).map { Held.id($0) }
        let (photos, receipt, step, other) = (ids[0...1], ids[2], ids[3], ids[4])
        let fields = """
            {"photos":["\(photos[0].text)","\(photos[1].text)","x",7],"receipt":"\(receipt.text)",
            "site":"\(other.text)","steps":{"first":{"image":"\(step.text)"},
            "second":{},"third":[],"site":{"image":"\(other.text)"}}}
            """
        var device = device(kind, fields)
        let needs = ImageNeeds(of: device, held: [receipt, other], types: [Inspection.self])
        #expect(needs.missing == Set(photos).union([step]) && needs.unneeded == [other])
        #expect(ImageNeeds(of: device, held: [receipt]).unneeded == [receipt])
        let patch = Mutation(
            operation: .patch, kind: kind, id: Held.ana, fields: Array(#"{"receipt":"\#(other.text)"}"#.utf8))
        _ = try device.enqueue(patch, in: .common)
        #expect(ImageNeeds(of: device, held: [other], types: [Inspection.self]).unsent == [other])
    }

    @Test(arguments: ["{}", #"{"photos":{}}"#, #"{"photos":"x"}"#, #"{"steps":[null,1,{"image":null}]}"#, "", "[]"])
    func objectOfAnOwnKindWithoutImagesNeedsNone(fields: String) throws {
        let kind = try #require(Kind(named: Inspection.kindName))
        let needs = ImageNeeds(of: device(kind, fields), held: [avatar], types: [Inspection.self])
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
