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

/// Several commands for the same defect.
@Suite(.ownThreads) struct ConcurrentCommandTests {
    private static func modify(_ id: String, _ severity: String, over base: String) -> DefectCommand {
        DefectCommand(operation: .modify, record: id, fields: ["Severity": severity], base: ["Severity": base])
    }

    /// Both commands have the same base; the second gets a conflict with the first one's value.
    @Test func secondWriterGetsConflictWithCurrentValue() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let anas = try await world.perform(Self.modify(id, "2-Major", over: "3-Average"))
            let bos = try await world.perform(Self.modify(id, "4-Minor", over: "3-Average"), as: "bo@example.com")
            #expect(anas.status == .done && bos.status == .conflict)
            #expect(
                bos.messages == ["Severity is now '2-Major', not '3-Average'; requested: '4-Minor'"])
            #expect(world.compass.record(id)?.fields["Severity"] == "2-Major" && world.compass.saveCount(id) == 2)
            try world.expectNothingOpen()
        }
    }

    /// Another user saves between the read and the commit: Compass rejects the commit, and the fields give the reason.
    @Test(arguments: [("Severity", "2-Major", DefectCommand.Status.conflict), ("Description", "d", .done)])
    func rejectedCommitIsComparedWithTheRecord(
        field: String, value: String, status: DefectCommand.Status
    ) async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let bo = world.compass.compass("bo")
            let reference = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Severity": "4-Minor"]))
            let other = InterruptedTracker(world.compass.compass("ana")) {
                _ = try? await bo.edit(id, before: .never).commit([FieldValue(field, value)], before: .never)
            }
            let caller = CommandCaller(tracker: other, deadline: .never)
            let result = await caller.call(
                .perform(try world.command(reference), record: id, isNew: false, isUncertain: false))
            let other2 = "Severity is now '2-Major', not '3-Average'; requested: '4-Minor'"
            #expect(result.withoutDetail == (status == .conflict ? .conflict([other2]) : .concurrentCommit))
            // A change of another field is no conflict at the next attempt.
            try await world.finish(reference)
            if status == .done { #expect(world.compass.record(id)?.fields["Severity"] == "4-Minor") }
            #expect(world.compass.record(id)?.fields[field] == (status == .done ? value : "4-Minor"))
            try world.expectNothingOpen()
        }
    }

    /// A person's commands for a record run in the order of their submission, whichever event arrives first. Commands
    /// of two people run one at a time.
    @Test func commandsOfARecordRunInOrder() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let first = try world.handIn(Self.modify(id, "2-Major", over: "3-Average"))
            let second = try world.handIn(
                DefectCommand(operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "ana"]))
            let bos = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Description": "d"]), as: "bo@example.com")
            let other = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            // The second command's event arrives first.
            func isParked(_ step: CommandWorld.Step) -> Bool {
                if case .deferred(_, _, .planned) = step.disposition { true } else { false }
            }
            var steps = try world.decide([second, first, bos, other])
            #expect(steps.map(isParked) == [true, false, true, false])
            let (call, newCall) = (try steps[1].call(), try steps[3].call())
            steps = try world.decide([second, bos])
            #expect(steps.map(isParked) == [true, true], "while the first one is in progress")
            let result = try await world.call(call)
            _ = try await world.call(newCall)
            #expect(try world.decide([first], [result]).map(isParked) == [false])
            #expect(try world.command(first).status == .done)
            steps = try world.decide([bos, second])
            #expect(steps.map(isParked) == [false, true])
            let bosResult = try await world.call(try steps[0].call())
            _ = try world.decide([bos], [bosResult])
            try await world.finish(second)
            let fields = world.compass.record(id)?.fields ?? [:]
            #expect(fields["Severity"] == "2-Major" && fields["State"] == "Opened" && fields["Description"] == "d")
            #expect(world.compass.saveCount(id) == 4)
        }
    }

    /// Two workers process one command: one of them owns the row.
    @Test func secondWorkerWaitsForTheLease() async throws {
        try await CommandWorld.run { world in
            let reference = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(reference).call()
            let other = try world.step(reference)
            guard case .deferred(_, let after, .planned) = other.disposition else {
                Issue.record("\(other)")
                return
            }
            #expect(after > .seconds(80))
            let result = try await world.call(call)
            // Another worker has taken over when the result arrives: the result is obsolete.
            try world.passTime()
            let theirs = try world.step(reference).call()
            let late = try world.step(reference, result)
            if case .deferred = late.disposition {} else { Issue.record("\(late)") }
            let opened = try await world.call(theirs)
            let next = try world.step(reference, opened).call()
            let done = try await world.call(next)
            _ = try world.decide([reference], [done])
            #expect(world.compass.records("N").count == 1)
            #expect(try world.command(reference).status == .done)
        }
    }

    /// A command requests the next history poll of the environment's account or of the person.
    @Test(arguments: [true, false]) func finishedCommandRequestsAHistoryPoll(hasAccount: Bool) async throws {
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
            _ = try await world.perform(DefectCommand(operation: .queries))
            _ = try await world.perform(DefectCommand(operation: .form))
            #expect(try due(&world) == [])
            _ = try await world.perform(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            #expect(try due(&world) == [hasAccount ? "changes" : "changes of \(realm)"])
        }
    }
}

extension ActionResult {
    /// The result without the record that a conflict includes.
    var withoutDetail: ActionResult {
        if case .conflict(let messages, _) = self { .conflict(messages) } else { self }
    }
}

extension CommandWorld.Step {
    func call() throws -> CommandHandler.Call {
        guard case .call(let call, _) = disposition else { throw NoCall(step: self) }
        return call
    }

    struct NoCall: Error { let step: CommandWorld.Step }
}
