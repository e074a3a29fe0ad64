import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct DeviceOutboxTests {
    @Test func withoutAnAnswerTheSameNumbersGoOutAgain() {
        var outbox = filled(3)
        let first = outbox.nextBatch()
        #expect(first.map(\.sequence) == [1, 2, 3])
        outbox.enqueue(mutation(4))
        #expect(Array(outbox.nextBatch().prefix(3)) == first)
        #expect(outbox.nextBatch().last?.sequence == 4)
    }

    @Test func answersTakeMutationsOffInTheirOrder() {
        var outbox = filled(3)
        let problem = DeviceOutbox.Outcome.rejected(code: "closed", detail: "")
        let answers = outbox.answered([1: .accepted(position: 8), 2: problem])
        #expect(answers.map(\.mutation.id) == [mutation(1).id, mutation(2).id])
        #expect(answers.map(\.outcome) == [.accepted(position: 8), problem])
        #expect(outbox.nextBatch().map(\.sequence) == [3], "a rejected one does not hold up those behind it")
        #expect(outbox.answered([1: .accepted(position: 8)]) == [], "an answer that came twice")
        #expect(outbox.answered([4: .accepted(position: 9)]) == [], "an answer to something never sent")
        #expect(outbox.count == 1)
    }

    @Test func aRequestIsBounded() {
        let outbox = filled(DeviceOutbox.batchCountMax + 5)
        #expect(outbox.nextBatch().count == DeviceOutbox.batchCountMax)
    }

    /// A restored database expects an older number: what was answered since goes out again, in its order.
    @Test func whatTheGatewayLostIsSentAgain() throws {
        var outbox = filled(4)
        let first = outbox.nextBatch()
        _ = outbox.answered([1: .accepted(position: 8), 2: .accepted(position: 9), 3: .accepted(position: 10)])
        #expect(outbox.lastAnswered?.sequence == 3)
        let id = outbox.clientID
        outbox.goBack(to: 2, newClientID: StableID.uuid("other"))
        #expect(outbox.nextBatch() == Array(first.dropFirst()))
        #expect(outbox.clientID == id)
        let answers = outbox.answered([2: .accepted(position: 90), 3: .accepted(position: 91)])
        #expect(answers.map(\.mutation.id) == [mutation(2).id, mutation(3).id])
        #expect(outbox.nextBatch().map(\.sequence) == [4])
    }

    /// What is not kept any more cannot be sent again; what follows is not held up by it.
    @Test func whatIsKeptNoMoreHoldsNothingUp() throws {
        var outbox = filled(25, keptCount: 10)
        for sequence in 1...Int64(22) { _ = outbox.answered([sequence: .accepted(position: sequence)]) }
        outbox.goBack(to: 3, newClientID: StableID.uuid("other"))
        #expect(outbox.clientID == StableID.uuid("other"))
        #expect(outbox.nextBatch().map(\.mutation.id) == (12...25).map { mutation($0).id }, "the newest are kept")
        outbox.enqueue(mutation(26))
        #expect(outbox.nextBatch().map(\.sequence) == Array(1...15))
    }

    @Test func theBodyIsWhatTheGatewayReads() throws {
        var outbox = DeviceOutbox(clientID: StableID.uuid("client"))
        outbox.enqueue(mutation(1))
        outbox.enqueue(DeviceMutation(operation: .delete, id: StableID.uuid("2"), fields: nil))
        let body = outbox.body(of: outbox.nextBatch(), realm: try RealmPath.user("ana@example.com"))
        let expected = """
            {"clientId":"\(StableID.uuid("client").text)","mutations":[\
            {"sequence":1,"realm":"/users/ana@example.com","op":"patch","kind":"TimeEntry",\
            "id":"\(StableID.uuid("1").text)","fields":{"submitRequested":true}},\
            {"sequence":2,"realm":"/users/ana@example.com","op":"delete","kind":"TimeEntry",\
            "id":"\(StableID.uuid("2").text)"}]}
            """
        #expect(String(decoding: body, as: UTF8.self) == expected)
    }

    @Test func answersAreReadFromTheGatewaysJSON() throws {
        let text = """
            {"results":[{"sequence":1,"accepted":{"position":12}},\
            {"sequence":2,"rejected":{"type":"https://fieldpost.dev/problems/deleted","title":"x","detail":"gone"}}],\
            "expectedSequence":3}
            """
        let answers = try JSONDecoder().decode(MutationAnswers.self, from: Data(text.utf8))
        #expect(
            answers.outcomes == [1: .accepted(position: 12), 2: .rejected(code: "deleted", detail: "gone")])
    }

    private func filled(_ count: Int, keptCount: Int = 100) -> DeviceOutbox {
        var outbox = DeviceOutbox(clientID: StableID.uuid("client"), keptCount: keptCount)
        for number in 1...count { outbox.enqueue(mutation(number)) }
        return outbox
    }

    private func mutation(_ number: Int) -> DeviceMutation {
        DeviceMutation(
            operation: .patch, id: StableID.uuid("\(number)"), fields: Array(#"{"submitRequested":true}"#.utf8))
    }
}

@Suite(.ownThreads) struct ReleaseClockTests {
    private let entry = StableID.uuid("entry")

    @Test func theFirstSendingAndTheFirstSightCount() {
        var clock = ReleaseClock()
        let start = ContinuousClock.now
        clock.sent(entry, at: start)
        clock.sent(entry, at: start + .seconds(5))
        clock.seenReleased(entry, at: start + .seconds(7))
        clock.seenReleased(entry, at: start + .seconds(9))
        #expect(clock.measured == [.seconds(7)])
    }

    @Test func timeOfflineIsNotMeasured() {
        var clock = ReleaseClock()
        clock.sent(entry, at: .now)
        clock.wentOffline()
        clock.seenReleased(entry, at: .now + .seconds(60))
        #expect(clock.measured == [])
    }

    @Test func percentilesAreNearestRanks() {
        let percentiles = Percentiles((1...200).reversed().map { .seconds($0) })
        #expect(percentiles[50] == .seconds(100))
        #expect(percentiles[95] == .seconds(190))
        #expect(percentiles[99] == .seconds(198))
        #expect(Percentiles([.seconds(3)])[99] == .seconds(3))
        #expect(Percentiles([])[50] == nil)
    }
}
