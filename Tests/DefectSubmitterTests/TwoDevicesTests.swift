import BackendConnections
import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import KeyedWorker
@testable import Sandbox

/// More than one of them wants something of the same defect.
@Suite(.ownThreads) struct TwoDevicesTests {
    private static func modify(_ id: String, _ severity: String, over base: String) -> DefectCommand {
        DefectCommand(operation: .modify, record: id, fields: ["Severity": severity], base: ["Severity": base])
    }

    /// Both saw the same; the second is told what the first has made of it.
    @Test func oneWinsAndTheOtherIsToldWhatChanged() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("H")
            let anas = try await world.perform(Self.modify(id, "2-Major", over: "3-Average"))
            let bos = try await world.perform(Self.modify(id, "4-Minor", over: "3-Average"), as: "bo@example.com")
            #expect(anas.status == .done && bos.status == .conflict)
            #expect(
                bos.messages == ["Severity is '2-Major' by now, and not '3-Average' any more; wanted was '4-Minor'"])
            #expect(world.standIn.record(id)?.fields["Severity"] == "2-Major" && world.standIn.saveCount(id) == 2)
            try world.expectNothingOpen()
        }
    }

    /// The other one saves between this one's reading and its commit: Compass refuses, and the fields tell why.
    @Test(arguments: [("Severity", "2-Major", DefectCommand.Status.conflict), ("Description", "d", .done)])
    func aCommitThatComesSecondIsLookedInto(
        field: String, value: String, status: DefectCommand.Status
    ) async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("H")
            let bo = world.standIn.compass("bo")
            let place = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Severity": "4-Minor"]))
            let other = Interrupter(world.standIn.compass("ana")) {
                _ = try? await bo.edit(id, before: .never).commit([FieldValue(field, value)], before: .never)
            }
            let caller = CommandCaller(tracker: other, deadline: .never)
            let answer = await caller.call(
                .carryOut(try world.command(place), record: id, isNew: false, isUncertain: false))
            let other2 = "Severity is '2-Major' by now, and not '3-Average' any more; wanted was '4-Minor'"
            #expect(answer == (status == .conflict ? .conflict([other2]) : .overtaken))
            // What concerns another field is done with the next try.
            try await world.finish(place)
            if status == .done { #expect(world.standIn.record(id)?.fields["Severity"] == "4-Minor") }
            #expect(world.standIn.record(id)?.fields[field] == (status == .done ? value : "4-Minor"))
            try world.expectNothingOpen()
        }
    }

    /// A person's commands about a record are done in the order in which they were handed in, whoever hears of which
    /// first; and of two people's one at a time.
    @Test func commandsOfARecordWaitForTheirTurn() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("H")
            let first = try world.handIn(Self.modify(id, "2-Major", over: "3-Average"))
            let second = try world.handIn(
                DefectCommand(operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "ana"]))
            let bos = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Description": "d"]), as: "bo@example.com")
            let other = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            // The second is heard of first.
            func isParked(_ step: CommandWorld.Step) -> Bool {
                if case .park(_, _, .planned) = step.disposition { true } else { false }
            }
            var steps = try world.decide([second, first, bos, other])
            #expect(steps.map(isParked) == [true, false, true, false])
            let (call, newCall) = (try steps[1].call(), try steps[3].call())
            steps = try world.decide([second, bos])
            #expect(steps.map(isParked) == [true, true], "while the first one is under way")
            let answer = try await world.call(call)
            _ = try await world.call(newCall)
            #expect(try world.decide([first], [answer]).map(isParked) == [false])
            #expect(try world.command(first).status == .done)
            steps = try world.decide([bos, second])
            #expect(steps.map(isParked) == [false, true])
            let bosAnswer = try await world.call(try steps[0].call())
            _ = try world.decide([bos], [bosAnswer])
            try await world.finish(second)
            let fields = world.standIn.record(id)?.fields ?? [:]
            #expect(fields["Severity"] == "2-Major" && fields["State"] == "Opened" && fields["Description"] == "d")
            #expect(world.standIn.saveCount(id) == 4)
        }
    }

    /// Two workers decide about one command: one of them has the row.
    @Test func twoWorkersDoNotDoItTwice() async throws {
        try await CommandWorld.run { world in
            let place = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(place).call()
            let other = try world.step(place)
            guard case .park(_, let after, .planned) = other.disposition else {
                Issue.record("\(other)")
                return
            }
            #expect(after > .seconds(80))
            let answer = try await world.call(call)
            // Somebody else has taken over by the time the answer is heard: it says nothing any more.
            try world.passTime()
            let theirs = try world.step(place).call()
            let late = try world.step(place, answer)
            if case .park = late.disposition {} else { Issue.record("\(late)") }
            let begun = try await world.call(theirs)
            let next = try world.step(place, begun).call()
            let done = try await world.call(next)
            _ = try world.decide([place], [done])
            #expect(world.standIn.records("N").count == 1)
            #expect(try world.command(place).status == .done)
        }
    }

    /// What is done is to be seen soon: the next round is asked for, of the environment's account or of the person.
    @Test(arguments: [true, false]) func aRoundOfTheNotifierIsAskedFor(hasAccount: Bool) async throws {
        try await CommandWorld.run { world in
            var tracker = try #require(try DefectTracker.load(world.acme.id, on: &world.acme.connection))
            if hasAccount { tracker.account = .token(sealed: Bytea([1])) }
            try world.acme.connection.run(tracker.save())
            let realm = try world.acme.realm(.user("ana@example.com"))
            try world.acme.connection.run([
                """
                INSERT INTO defect.run (environment_id, scope, run, started_at)
                VALUES (\(world.acme.id), 'changes', 7, now()), (\(world.acme.id), 'comparison', 7, now())
                """,
                """
                INSERT INTO defect.own_run (environment_id, realm_id, scope, run, started_at)
                SELECT \(world.acme.id), i.realm_id, s.scope, 7, now()
                FROM (VALUES (\(realm)), (\(realm + 1))) i(realm_id), (VALUES ('changes'), ('comparison')) s(scope)
                """,
            ])
            func due(_ world: inout CommandWorld) throws -> [String] {
                try world.acme.connection.run(
                    """
                    SELECT scope FROM defect.run WHERE asked_for AND started_at > now() - interval '1 hour'
                    UNION ALL
                    SELECT scope || ' of ' || realm_id FROM defect.own_run WHERE asked_for
                    """
                ).decode(String.self)
            }
            _ = try await world.perform(DefectCommand(operation: .create, fields: ["Headline": "N"]))
            #expect(try due(&world) == [])
            _ = try await world.perform(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            #expect(try due(&world) == [hasAccount ? "changes" : "changes of \(realm)"])
        }
    }
}

extension CommandWorld.Step {
    func call() throws -> CommandHandler.Call {
        guard case .call(let call, _) = disposition else { throw NoCall(step: self) }
        return call
    }

    struct NoCall: Error { let step: CommandWorld.Step }
}
