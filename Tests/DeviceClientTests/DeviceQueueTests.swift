import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DeviceClient

@Suite(.ownThreads) struct DeviceQueueTests {
    private let realm: RealmPath

    init() throws { realm = try RealmPath.user("ana@example.com") }

    @Test func sameNumbersAreResentWithoutResponse() {
        var queue = filled(3)
        let first = sent(&queue)
        #expect(first.map(\.sequence) == [1, 2, 3])
        _ = queue.enqueue(mutation(4), in: realm)
        let second = sent(&queue)
        #expect(Array(second.prefix(3)) == first)
        #expect(second.last?.sequence == 4)
    }

    @Test func resultsCompleteMutationsInOrder() {
        var queue = filled(3)
        let rejection = MutationOutcome.rejected(code: "closed", detail: "")
        let completed = complete(&queue, [1: .accepted(position: 8), 2: rejection])
        #expect(completed?.map(\.mutation) == [mutation(1), mutation(2)])
        #expect(completed?.map(\.outcome) == [.accepted(position: 8), rejection])
        #expect(sent(&queue).map(\.sequence) == [3], "a rejected mutation does not block later ones")
        #expect(complete(&queue, [1: .accepted(position: 8)]) == [], "a duplicate result")
        #expect(complete(&queue, [4: .accepted(position: 9)]) == [], "a result of a mutation that was never sent")
        #expect(queue.count == 1)
    }

    @Test func requestIsLimitedInCountAndSize() throws {
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

    @Test func responseToEarlierRequestIsIgnored() throws {
        var queue = filled(2)
        let early = try request(&queue, 1)
        let late = try request(&queue, 2)
        #expect(queue.apply(.gap(expectedSequence: 1), to: early, newClientID: id(9)) == nil)
        let effect = queue.apply(
            .results([1: .accepted(position: 1)], expectedSequence: 2), to: late, newClientID: id(9))
        #expect(effect?.completed.count == 1)
        #expect(
            queue.apply(.gap(expectedSequence: 1), to: late, newClientID: id(9)) == nil, "the request has its response")
    }

    /// A restored database expects a lower number: later mutations are resent in order.
    @Test func lostMutationsAreResent() throws {
        var queue = filled(4)
        let first = sent(&queue)
        let rejection = MutationOutcome.rejected(code: "closed", detail: "")
        _ = complete(&queue, [1: .accepted(position: 8), 2: .accepted(position: 9), 3: rejection])
        #expect(gap(&queue, 2)?.lostCount == 0)
        #expect(sent(&queue).map(\.mutation) == first.dropFirst().map(\.mutation))
        #expect(sent(&queue).map(\.outcome) == [nil, rejection, nil], "rejected mutations are not shown meanwhile")
        #expect(queue.clientID == id(0))
        let completed = complete(&queue, [2: .accepted(position: 90), 3: .accepted(position: 91)])
        #expect(completed?.map(\.mutation) == [mutation(2), mutation(3)])
        #expect(sent(&queue).map(\.sequence) == [4])
    }

    /// Expired mutations cannot be resent; later ones are not blocked.
    @Test func expiredMutationsDoNotBlockLaterOnes() throws {
        var queue = filled(25, historyCountMin: 10)
        for sequence in 1...Int64(22) { _ = complete(&queue, [sequence: .accepted(position: sequence)]) }
        #expect(gap(&queue, 3)?.lostCount == 9)
        #expect(queue.clientID == id(9))
        #expect(sent(&queue).map(\.mutation) == (12...25).map { mutation($0) }, "the newest are stored")
        _ = queue.enqueue(mutation(26), in: realm)
        #expect(sent(&queue).map(\.sequence) == Array(1...15))
    }

    /// A cloned device: the results for its numbers belong to the other device.
    @Test func unallocatedNumberBelongsToAnotherDevice() throws {
        var queue = filled(2)
        let sent = try request(&queue, 2)
        let response = QueueResponse.results(
            [1: .accepted(position: 1), 2: .accepted(position: 2)], expectedSequence: 4)
        let effect = queue.apply(response, to: sent, newClientID: id(9))
        #expect(effect?.completed == [])
        #expect(queue.clientID == id(9))
        #expect(self.sent(&queue).map(\.sequence) == [1, 2])
    }

    @Test func resetRealmQueriesTheLastResult() throws {
        var queue = filled(2)
        queue.realmWasReset()
        #expect(!queue.isInDoubt, "there is no result that could be lost")
        _ = complete(&queue, [1: .accepted(position: 1), 2: .accepted(position: 2)])
        queue.realmWasReset()
        #expect(queue.count == 0 && queue.hasToSend)
        #expect(sent(&queue).map(\.sequence) == [2])
        #expect(complete(&queue, [2: .accepted(position: 2)], expected: 3) == [])
        #expect(!queue.hasToSend)
    }

    /// Only the last result was lost: the mutation is reprocessed when it is queried, and nothing is missing.
    @Test func lastResultMayDifferAfterRestore() throws {
        var queue = filled(1)
        _ = complete(&queue, [1: .accepted(position: 7)])
        queue.realmWasReset()
        let rejection = MutationOutcome.rejected(code: "closed", detail: "")
        #expect(complete(&queue, [1: rejection], expected: 2)?.map(\.outcome) == [rejection])
        #expect(queue.storedMutations.map(\.outcome) == [rejection])
    }

    /// The response to the query was lost and the person continued: the new result is reported.
    @Test func lastResultIsQueriedBeforeWaitingMutations() throws {
        var queue = filled(1)
        _ = complete(&queue, [1: .accepted(position: 7)])
        queue.realmWasReset()
        _ = try request(&queue, 1)
        _ = queue.enqueue(Mutation(operation: .delete, kind: .fieldTask, id: id(2)), in: .manager)
        let query = try request(&queue, 500)
        #expect(query.mutations.map(\.sequence) == [1, 2])
        let outcomes: [Int64: MutationOutcome] = [
            1: .rejected(code: "closed", detail: ""), 2: .accepted(position: 9),
        ]
        let effect = queue.apply(.results(outcomes, expectedSequence: 3), to: query, newClientID: id(9))
        #expect(effect?.completed.map(\.outcome) == [outcomes[1], outcomes[2]])
        #expect(queue.storedMutations.map(\.outcome) == [outcomes[1], outcomes[2]] && !queue.hasToSend)
    }

    @Test func bodyHasTheGatewaysFormat() throws {
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

    @Test func responsesAreDecodedFromJSON() throws {
        let text = """
            {"results":[{"sequence":1,"accepted":{"position":12}},\
            {"sequence":2,"rejected":{"type":"urn:fieldpost:problem:deleted","title":"x","detail":"gone"}},\
            {"sequence":3,"rejected":{"type":"urn:fieldpost:problem:result-expired"}},\
            {"sequence":4,"rejected":{"type":"urn:fieldpost:problem:answer-forgotten"}}],"expectedSequence":5}
            """
        #expect(
            try QueueResponse.read(status: 200, body: Array(text.utf8))
                == .results(
                    [
                        1: .accepted(position: 12), 2: .rejected(code: "deleted", detail: "gone"), 3: .expired,
                        4: .expired,
                    ], expectedSequence: 5))
        let gap = Array(#"{"type":"urn:fieldpost:problem:sequence-gap","expectedSequence":3}"#.utf8)
        #expect(try QueueResponse.read(status: 409, body: gap) == .gap(expectedSequence: 3))
        #expect(try QueueResponse.read(status: 503, body: []) == nil)
    }

    @Test func storedOutcomesKeepTheirNames() throws {
        let stored = #"[{"accepted":{"position":1}},{"rejected":{"code":"deleted","detail":""}},{"forgotten":{}}]"#
        let outcomes: [MutationOutcome] = [.accepted(position: 1), .rejected(code: "deleted", detail: ""), .expired]
        #expect(try JSONDecoder().decode([MutationOutcome].self, from: Data(stored.utf8)) == outcomes)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(outcomes), as: UTF8.self) == stored)
    }

    private func id(_ number: Int) -> UUID {
        UUID(uuid: (0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)))
    }

    private func filled(_ count: Int, historyCountMin: Int = 100) -> DeviceQueue {
        var queue = DeviceQueue(clientID: id(0), historyCountMin: historyCountMin)
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

    private func complete(
        _ queue: inout DeviceQueue, _ outcomes: [Int64: MutationOutcome], expected: Int64 = 1
    ) -> [QueuedMutation]? {
        queue.nextRequest(countMax: .max).flatMap { request in
            queue.apply(.results(outcomes, expectedSequence: expected), to: request, newClientID: id(9))?.completed
        }
    }

    private func gap(_ queue: inout DeviceQueue, _ expected: Int64) -> DeviceQueue.ResponseEffect? {
        queue.nextRequest(countMax: .max).flatMap { request in
            queue.apply(.gap(expectedSequence: expected), to: request, newClientID: id(9))
        }
    }
}
