import Essentials
import FoundationEssentials
import Model
import Testing

@testable import DeviceClient

@Suite struct DeviceQueueTests {
    private let realm: RealmPath

    init() throws { realm = try RealmPath.user("ana@example.com") }

    @Test func withoutAnAnswerTheSameNumbersGoOutAgain() {
        var queue = filled(3)
        let first = sent(&queue)
        #expect(first.map(\.sequence) == [1, 2, 3])
        _ = queue.enqueue(mutation(4), in: realm)
        let second = sent(&queue)
        #expect(Array(second.prefix(3)) == first)
        #expect(second.last?.sequence == 4)
    }

    @Test func answersTakeMutationsOffInTheirOrder() {
        var queue = filled(3)
        let problem = MutationOutcome.rejected(code: "closed", detail: "")
        let answered = answer(&queue, [1: .accepted(position: 8), 2: problem])
        #expect(answered?.map(\.mutation) == [mutation(1), mutation(2)])
        #expect(answered?.map(\.outcome) == [.accepted(position: 8), problem])
        #expect(sent(&queue).map(\.sequence) == [3], "a rejected one does not hold up those behind it")
        #expect(answer(&queue, [1: .accepted(position: 8)]) == [], "an answer that came twice")
        #expect(answer(&queue, [4: .accepted(position: 9)]) == [], "an answer to something never sent")
        #expect(queue.count == 1)
    }

    @Test func aRequestIsBoundedInNumberAndSize() throws {
        var queue = filled(DeviceQueue.batchCountMax + 5)
        #expect(sent(&queue).count == DeviceQueue.batchCountMax)
        #expect(try request(&queue, 20).mutations.count == 20)
        var large = DeviceQueue(clientID: id(0))
        let fields = Array("{\"text\":\"\(String(repeating: "a", count: 60_000))\"}".utf8)
        for number in 1...30 {
            let mutation = Mutation(operation: .put, kind: .timeEntry, id: id(number), fields: fields)
            _ = large.enqueue(mutation, in: realm)
        }
        let whole = try request(&large, .max)
        #expect(whole.mutations.count == 17)
        #expect(whole.body.count <= DeviceQueue.batchBytesMax)
    }

    @Test func anAnswerToAnEarlierRequestSaysNothing() throws {
        var queue = filled(2)
        let early = try request(&queue, 1)
        let late = try request(&queue, 2)
        #expect(queue.take(.gap(expectedSequence: 1), to: early, newClientID: id(9)) == nil)
        let taken = queue.take(
            .results([1: .accepted(position: 1)], expectedSequence: 2), to: late, newClientID: id(9))
        #expect(taken?.answered.count == 1)
        #expect(queue.take(.gap(expectedSequence: 1), to: late, newClientID: id(9)) == nil, "it has its answer")
    }

    /// A restored database expects an older number: what was answered since goes out again, in its order.
    @Test func whatTheGatewayLostIsSentAgain() throws {
        var queue = filled(4)
        let first = sent(&queue)
        let problem = MutationOutcome.rejected(code: "closed", detail: "")
        _ = answer(&queue, [1: .accepted(position: 8), 2: .accepted(position: 9), 3: problem])
        #expect(gap(&queue, 2)?.lostCount == 0)
        #expect(sent(&queue).map(\.mutation) == first.dropFirst().map(\.mutation))
        #expect(sent(&queue).map(\.outcome) == [nil, problem, nil], "what was rejected is not shown meanwhile")
        #expect(queue.clientID == id(0))
        let answered = answer(&queue, [2: .accepted(position: 90), 3: .accepted(position: 91)])
        #expect(answered?.map(\.mutation) == [mutation(2), mutation(3)])
        #expect(sent(&queue).map(\.sequence) == [4])
    }

    /// What is not kept any more cannot be sent again; what follows is not held up by it.
    @Test func whatIsKeptNoMoreHoldsNothingUp() throws {
        var queue = filled(25, keptCount: 10)
        for sequence in 1...Int64(22) { _ = answer(&queue, [sequence: .accepted(position: sequence)]) }
        #expect(gap(&queue, 3)?.lostCount == 9)
        #expect(queue.clientID == id(9))
        #expect(sent(&queue).map(\.mutation) == (12...25).map { mutation($0) }, "the newest are kept")
        _ = queue.enqueue(mutation(26), in: realm)
        #expect(sent(&queue).map(\.sequence) == Array(1...15))
    }

    /// A device that was cloned: the answers to its numbers are the other's.
    @Test func aNumberThatWasNeverGivenIsSomebodyElses() throws {
        var queue = filled(2)
        let sent = try request(&queue, 2)
        let answer = QueueAnswer.results(
            [1: .accepted(position: 1), 2: .accepted(position: 2)], expectedSequence: 4)
        let taken = queue.take(answer, to: sent, newClientID: id(9))
        #expect(taken?.answered == [])
        #expect(queue.clientID == id(9))
        #expect(self.sent(&queue).map(\.sequence) == [1, 2])
    }

    @Test func aRealmGivenAnewHasTheServerAskedForItsLastAnswer() throws {
        var queue = filled(2)
        queue.realmWasReset()
        #expect(!queue.isInDoubt, "nothing was answered that could be lost")
        _ = answer(&queue, [1: .accepted(position: 1), 2: .accepted(position: 2)])
        queue.realmWasReset()
        #expect(queue.count == 0 && queue.hasToSend)
        #expect(sent(&queue).map(\.sequence) == [2])
        #expect(answer(&queue, [2: .accepted(position: 2)], expected: 3) == [])
        #expect(!queue.hasToSend)
    }

    /// Only the last answer was lost: asked for, the mutation is decided anew, and nothing is missing.
    @Test func theLastAnswerMayBeAnotherAfterARestore() throws {
        var queue = filled(1)
        _ = answer(&queue, [1: .accepted(position: 7)])
        queue.realmWasReset()
        let problem = MutationOutcome.rejected(code: "closed", detail: "")
        #expect(answer(&queue, [1: problem], expected: 2)?.map(\.outcome) == [problem])
        #expect(queue.remembered.map(\.outcome) == [problem])
    }

    /// The question was answered and the answer lost, and the person went on meanwhile: what was decided anew is told.
    @Test func theLastAnswerIsAskedForBeforeWhatWaits() throws {
        var queue = filled(1)
        _ = answer(&queue, [1: .accepted(position: 7)])
        queue.realmWasReset()
        _ = try request(&queue, 1)
        _ = queue.enqueue(Mutation(operation: .delete, kind: .fieldTask, id: id(2)), in: .manager)
        let asked = try request(&queue, 500)
        #expect(asked.mutations.map(\.sequence) == [1, 2])
        let outcomes: [Int64: MutationOutcome] = [
            1: .rejected(code: "closed", detail: ""), 2: .accepted(position: 9),
        ]
        let taken = queue.take(.results(outcomes, expectedSequence: 3), to: asked, newClientID: id(9))
        #expect(taken?.answered.map(\.outcome) == [outcomes[1], outcomes[2]])
        #expect(queue.remembered.map(\.outcome) == [outcomes[1], outcomes[2]] && !queue.hasToSend)
    }

    @Test func theBodyIsWhatTheGatewayReads() throws {
        var queue = filled(1)
        _ = queue.enqueue(Mutation(operation: .delete, kind: .fieldTask, id: id(2), position: 7), in: .manager)
        let expected = """
            {"clientId":"\(id(0).text)","mutations":[\
            {"sequence":1,"realm":"/users/ana@example.com","op":"patch","kind":"TimeEntry",\
            "id":"\(id(1).text)","fields":{"submitRequested":true}},\
            {"sequence":2,"realm":"/manager","op":"delete","kind":"FieldTask",\
            "id":"\(id(2).text)","position":7}]}
            """
        #expect(String(decoding: try request(&queue, 2).body, as: UTF8.self) == expected)
    }

    @Test func answersAreReadFromTheGatewaysJSON() throws {
        let text = """
            {"results":[{"sequence":1,"accepted":{"position":12}},\
            {"sequence":2,"rejected":{"type":"urn:fieldpost:problem:deleted","title":"x","detail":"gone"}},\
            {"sequence":3,"rejected":{"type":"urn:fieldpost:problem:answer-forgotten"}}],"expectedSequence":4}
            """
        #expect(
            try QueueAnswer.read(status: 200, body: Array(text.utf8))
                == .results(
                    [1: .accepted(position: 12), 2: .rejected(code: "deleted", detail: "gone"), 3: .forgotten],
                    expectedSequence: 4))
        let gap = Array(#"{"type":"urn:fieldpost:problem:sequence-gap","expectedSequence":3}"#.utf8)
        #expect(try QueueAnswer.read(status: 409, body: gap) == .gap(expectedSequence: 3))
        #expect(try QueueAnswer.read(status: 503, body: []) == nil)
    }

    private func id(_ number: Int) -> UUID {
        UUID(uuid: (0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)))
    }

    private func filled(_ count: Int, keptCount: Int = 100) -> DeviceQueue {
        var queue = DeviceQueue(clientID: id(0), keptCount: keptCount)
        for number in 1...count { _ = queue.enqueue(mutation(number), in: realm) }
        return queue
    }

    private func mutation(_ number: Int) -> Mutation {
        Mutation(
            operation: .patch, kind: .timeEntry, id: id(number), fields: Array(#"{"submitRequested":true}"#.utf8))
    }

    private func request(_ queue: inout DeviceQueue, _ countMax: Int) throws -> QueueRequest {
        let request = queue.nextRequest(countMax: countMax)
        return try #require(request)
    }

    private func sent(_ queue: inout DeviceQueue) -> [QueuedMutation] {
        queue.nextRequest(countMax: .max)?.mutations ?? []
    }

    private func answer(
        _ queue: inout DeviceQueue, _ outcomes: [Int64: MutationOutcome], expected: Int64 = 1
    ) -> [QueuedMutation]? {
        queue.nextRequest(countMax: .max).flatMap { request in
            queue.take(.results(outcomes, expectedSequence: expected), to: request, newClientID: id(9))?.answered
        }
    }

    private func gap(_ queue: inout DeviceQueue, _ expected: Int64) -> DeviceQueue.Taken? {
        queue.nextRequest(countMax: .max).flatMap { request in
            queue.take(.gap(expectedSequence: expected), to: request, newClientID: id(9))
        }
    }
}
