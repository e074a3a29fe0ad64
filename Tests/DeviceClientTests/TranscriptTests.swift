import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DeviceClient

/// The transcripts in `examples/sync`, which the client for browsers runs, too.
@Suite(.ownThreads) struct TranscriptTests {
    @Test(arguments: Transcript.names) func transcriptHasTheExpectedResults(name: String) throws {
        let transcript = try Transcript(name)
        var run = TranscriptRun(transcript)
        for (index, step) in transcript.steps.enumerated() {
            try run.perform(step, at: "\(name), step \(index + 1)")
        }
    }

    @Test func folderHasTranscripts() { #expect(Transcript.names.count >= 20) }
}

/// A list of steps with the expected results.
private struct Transcript: Decodable {
    struct Step: Decodable {
        var enqueue: TranscriptJSON?
        var times: Int?
        var fill: Fill?
        var isInvalid: Bool?
        var syncRequest: SyncRequest?
        var line: TranscriptJSON?
        var nextRequest: NextRequest?
        var body: TranscriptJSON?
        var count: Int?
        var response: Response?
        var to: Int?
        var newClientId: UUID?
        var madeProgress: Bool?
        var lostCount: Int64?
        var answers: [TranscriptJSON]?
        var restart: Bool?
        var expect: Expectation?
    }

    struct Fill: Decodable {
        let field: String
        let length: Int
    }

    struct SyncRequest: Decodable {
        let live: Bool
        var only: [String]?
        var realmCountMax: Int?
    }

    struct NextRequest: Decodable {
        var countMax: Int?
    }

    struct Response: Decodable {
        let status: Int
        let body: TranscriptJSON
    }

    struct Expectation: Decodable {
        var shown: [TranscriptJSON]?
        var position: Int64?
        var cursors: [String: String?]?
        var waiting: [Int64]?
        var isInDoubt: Bool?
        var clientId: UUID?
        var unconfirmed: [TranscriptJSON]?
    }

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "examples/sync")
    static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).filter {
        $0.hasSuffix(".json")
    }.sorted()

    let clientId: UUID
    var historyCountMin: Int?
    let steps: [Step]

    init(_ name: String) throws {
        self = try JSONDecoder().decode(Self.self, from: try Data(contentsOf: Self.folder.appending(path: name)))
    }
}

/// A device that performs the steps of a transcript.
private struct TranscriptRun {
    private static let defaultClientID = UUID(uuidString: "00000000-0000-4000-8000-0000000000ff")

    private var state: DeviceState
    private var requests: [QueueRequest] = []

    init(_ transcript: Transcript) {
        state = DeviceState(
            clientID: transcript.clientId, historyCountMin: transcript.historyCountMin ?? 10_000)
    }

    mutating func perform(_ step: Transcript.Step, at location: String) throws {
        let comment = Comment(rawValue: location)
        if let mutation = step.enqueue {
            try enqueue(mutation, step, comment)
        } else if let request = step.syncRequest {
            let only = try request.only.map { Set(try $0.map { try #require(RealmPath($0), comment) }) }
            let body = state.syncRequest(
                isLive: request.live, only: only, realmCountMax: request.realmCountMax ?? DeviceCopy.namedCountMax)
            #expect(try TranscriptJSON(bytes: body) == step.body, comment)
        } else if let line = step.line {
            if let line = try SyncLine.read(try line.bytes) { _ = state.take(line) }
        } else if let next = step.nextRequest {
            let request = state.nextRequest(countMax: next.countMax ?? DeviceQueue.batchCountMax)
            if let request { requests.append(request) }
            if let count = step.count {
                #expect(request?.mutations.count == count, comment)
            } else {
                #expect(try request.map { try TranscriptJSON(bytes: $0.body) } == step.body, comment)
            }
        } else if let response = step.response {
            try take(response, step, comment)
        } else {
            #expect(step.restart == true, comment)
            state = try JSONDecoder().decode(DeviceState.self, from: try JSONEncoder().encode(state))
        }
        if let expected = step.expect { try check(expected, comment) }
    }

    private mutating func enqueue(_ given: TranscriptJSON, _ step: Transcript.Step, _ comment: Comment) throws {
        var fields = given["fields"]
        if let fill = step.fill { fields?[fill.field] = .text(String(repeating: "a", count: fill.length)) }
        let mutation = Mutation(
            operation: try #require(given["operation"]?.text.flatMap { Mutation.Operation(rawValue: $0) }, comment),
            kind: try #require(given["kind"]?.text.flatMap { Kind(rawValue: $0) }, comment),
            id: try #require(given["id"]?.text.flatMap { UUID(uuidString: $0) }, comment),
            fields: try fields.map { try $0.bytes }, position: given["position"]?.number,
            restores: given["restore"] == .flag(true))
        let realm = try #require(given["realm"]?.text.flatMap { RealmPath($0) }, comment)
        if step.isInvalid == true {
            #expect(throws: InvalidMutation.self, comment) { _ = try state.enqueue(mutation, in: realm) }
            return
        }
        for _ in 0..<(step.times ?? 1) { _ = try state.enqueue(mutation, in: realm) }
    }

    private mutating func take(
        _ response: Transcript.Response, _ step: Transcript.Step, _ comment: Comment
    ) throws {
        let request = try #require(step.to.map { requests[$0] } ?? requests.last, comment)
        let newClientID = try #require(step.newClientId ?? Self.defaultClientID, comment)
        let read = try QueueResponse.read(status: response.status, body: try response.body.bytes)
        let update = state.take(try #require(read, comment), to: request, newClientID: newClientID)
        if let madeProgress = step.madeProgress { #expect(update.madeProgress == madeProgress, comment) }
        if let lostCount = step.lostCount { #expect(update.lostCount == lostCount, comment) }
        if let answers = step.answers { #expect(update.answers.map(Self.json) == answers, comment) }
    }

    private static func json(_ item: QueuedMutation) -> TranscriptJSON {
        var members: [String: TranscriptJSON] = ["sequence": .number(item.sequence)]
        switch item.outcome {
        case .accepted(let position): members["accepted"] = .number(position)
        case .rejected(let code, let detail):
            members["rejected"] = .object(["code": .text(code), "detail": .text(detail)])
        case .expired: members["expired"] = .flag(true)
        case nil: break
        }
        return .object(members)
    }

    private func check(_ expected: Transcript.Expectation, _ comment: Comment) throws {
        if let shown = expected.shown {
            var objects: [TranscriptJSON] = []
            for (realm, content) in state.contents {
                for (id, object) in content { objects.append(try Self.json(realm, id, object)) }
            }
            #expect(
                objects.sorted { Self.order($0) < Self.order($1) }
                    == shown.sorted {
                        Self.order($0) < Self.order($1)
                    }, comment)
        }
        if let position = expected.position { #expect(state.copy.position == position, comment) }
        if let cursors = expected.cursors {
            let actual = Dictionary(uniqueKeysWithValues: state.copy.cursors.map { ($0.key.description, $0.value) })
            #expect(actual == cursors, comment)
        }
        if let waiting = expected.waiting { #expect(state.queue.waiting.map(\.sequence) == waiting, comment) }
        if let isInDoubt = expected.isInDoubt { #expect(state.queue.isInDoubt == isInDoubt, comment) }
        if let clientID = expected.clientId { #expect(state.queue.clientID == clientID, comment) }
        if let unconfirmed = expected.unconfirmed {
            var ids: Set<String> = []
            for (realm, content) in state.contents {
                for id in content.keys where state.hasUnconfirmedChanges(ObjectAddress(realm, id)) {
                    ids.insert(id.id.text)
                }
            }
            #expect(ids == Set(unconfirmed.compactMap { $0["id"]?.text }), comment)
        }
    }

    private static func json(
        _ realm: RealmPath, _ id: ObjectID, _ object: DeviceObject
    ) throws -> TranscriptJSON {
        .object([
            "realm": .text(realm.description), "kind": .text(id.kind.rawValue), "id": .text(id.id.text),
            "position": .number(object.position), "fields": try TranscriptJSON(bytes: object.fields),
        ])
    }

    private static func order(_ object: TranscriptJSON) -> String {
        ["realm", "kind", "id"].map { object[$0]?.text ?? "" }.joined(separator: " ")
    }
}

/// A JSON value, compared by its content.
private enum TranscriptJSON: Equatable, Codable {
    case null
    case flag(Bool)
    case number(Int64)
    case text(String)
    case list([TranscriptJSON])
    case object([String: TranscriptJSON])

    init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let list = try? container.decode([TranscriptJSON].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: TranscriptJSON].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let members): try container.encode(members)
        }
    }

    var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Int64? { if case .number(let number) = self { number } else { nil } }

    subscript(_ key: String) -> TranscriptJSON? {
        get { if case .object(let members) = self { members[key] } else { nil } }
        set {
            guard case .object(var members) = self else { return }
            members[key] = newValue
            self = .object(members)
        }
    }
}
