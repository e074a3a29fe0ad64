import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// The retention and the order of people's commands.
@Suite(.ownThreads) struct CommandOrderTests {
    private static func modify(_ id: String, _ headline: String = "new") -> DefectCommand {
        DefectCommand(operation: .modify, record: id, fields: ["Headline": headline])
    }

    /// The database updates the order with every write of a command.
    @Test func databaseRecordsCommandOrder() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            try world.expectOrder([])
            let long = String(repeating: "é", count: 40_000)
            let first = try world.handIn(Self.modify(id))
            let second = try world.handIn(Self.modify(long))
            let third = try world.handIn(DefectCommand(operation: .create, fields: ["Headline": "N"]))
            let draft = #"{"operation": "delete", "record": "\#(id)"}"#
            try world.acme.put([(UUID(), draft)], .defectCommand, into: .user("ana@example.com"))
            try world.expectOrder([(first, id, true), (second, String(long.prefix(255)), true), (third, nil, true)])
            try await world.finish(first)
            try await world.finish(second)
            try world.expectOrder([(first, id, false), (second, String(long.prefix(255)), false), (third, nil, true)])
            try world.delete(first)
            try world.delete(third)
            try world.expectOrder([(second, String(long.prefix(255)), false)])
            // Compaction removes tombstones; other deletes have the same effect.
            try world.acme.connection.run("DELETE FROM store.object WHERE kind = \(Kind.defectCommand)")
            try world.expectOrder([])
        }
    }

    /// Ended commands are removed, the oldest first; waiting commands and drafts stay.
    @Test func oldestEndedCommandsAreRemoved() async throws {
        try await CommandWorld.run { world in
            let ended = (0..<CommandOrderStore.endedMax + 5).map { _ in UUID() }
            for id in ended {
                let json =
                    #"{"operation": "delete", "record": "X", "submitRequested": true, "status": "done", "messages": []}"#
                try world.acme.put([(id, json)], .defectCommand, into: .user("ana@example.com"))
            }
            let draft = UUID()
            try world.acme.put(
                [(draft, #"{"operation": "delete", "record": "X"}"#)], .defectCommand, into: .user("ana@example.com"))
            let waiting = try world.handIn(Self.modify("SAMPL00000009"))
            let bos = try await world.perform(Self.modify("SAMPL00000009"), as: "bo@example.com")
            #expect(bos.status == .refused)
            #expect(try world.commandIDs().isSuperset(of: ended), "another person's")
            _ = try await world.perform(DefectCommand(operation: .delete, record: "SAMPL00000008"))
            let left = try world.commandIDs()
            #expect(left.isDisjoint(with: ended.prefix(5)) && left.isSuperset(of: ended.dropFirst(5)))
            #expect(left.contains(draft) && left.contains(waiting.id))
        }
    }

    /// Reads have a limit of their own, so that they do not displace the results of changes.
    @Test func oldestEndedReadsAreRemoved() async throws {
        try await CommandWorld.run { world in
            func json(_ operation: String) -> String {
                #"{"operation": "\#(operation)", "record": "X", "submitRequested": true, "status": "done"}"#
            }
            let changes = (0..<10).map { _ in UUID() }
            let names = DefectCommand.Operation.allCases.filter(\.isReading).map(\.rawValue)
            let reads = (0..<CommandOrderStore.endedReadsMax + 5).map { (UUID(), json(names[$0 % names.count])) }
            for (id, json) in changes.map({ ($0, json("modify")) }) + reads {
                try world.acme.put([(id, json)], .defectCommand, into: .user("ana@example.com"))
            }
            _ = try await world.perform(DefectCommand(operation: .queries))
            let left = try world.commandIDs()
            #expect(left.isSuperset(of: changes))
            #expect(left.isDisjoint(with: reads.prefix(5).map(\.0)))
            #expect(left.isSuperset(of: reads.dropFirst(5).map(\.0)))
        }
    }

    /// A read comes after the person's earlier commands for its record, and before the later ones. Other people's
    /// commands do not delay it.
    @Test func readIsPerformedInOrder() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let read = DefectCommand(operation: .read, record: id)
            let first = try world.handIn(Self.modify(id, "first"))
            let between = try world.handIn(read)
            let second = try world.handIn(Self.modify(id, "second"))
            let bos = try world.handIn(read, as: "bo@example.com")
            let steps = try world.decide([second, between, first, bos])
            func isParked(_ step: CommandWorld.Step) -> Bool {
                if case .deferred(_, _, .planned) = step.disposition { true } else { false }
            }
            #expect(steps.map(isParked) == [true, true, false, false])
            let bosResult = try await world.call(try steps[3].call())
            _ = try world.decide([bos], [bosResult])
            #expect(try world.command(bos).detail?.field("Headline")?.value == "old")
            let result = try await world.call(try steps[2].call())
            #expect(try world.decide([between], []).map(isParked) == [true], "the change is in progress")
            _ = try world.decide([first], [result])
            #expect(try world.decide([second]).map(isParked) == [true])
            try await world.finish(between)
            try await world.finish(second)
            #expect(try world.command(between).detail?.field("Headline")?.value == "first")
            #expect(world.compass.record(id)?.fields["Headline"] == "second")
            try world.expectNothingOpen()
        }
    }

    /// A crash left an edit session of the person open, and its command was deleted: a read waits for its revert.
    @Test func readNeverShowsTheValuesOfAnOpenSession() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let lost = try world.handIn(Self.modify(id, "lost"))
            world.gate.crash(after: 2)
            #expect(try await world.runUntilCrash(lost))
            #expect(world.compass.sessions.existing.count == 1)
            try world.delete(lost)
            let read = try world.handIn(DefectCommand(operation: .read, record: id))
            guard case .deferred(_, _, .planned) = try world.step(read).disposition else { throw UnexpectedStep() }
            try await world.finish(lost)
            try await world.finish(read)
            #expect(try world.command(read).detail?.field("Headline")?.value == "old")
            try world.expectNothingOpen()
        }
    }

    /// An operator has discarded the key of a command, with or without an attempt: commands that wait for its record
    /// re-queue it.
    @Test(arguments: [true, false]) func discardedCommandIsRequeuedByAWaitingOne(isBegun: Bool) async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let lost = try world.handIn(Self.modify(id, "lost"))
            if isBegun {
                world.gate.crash(after: 2)
                #expect(try await world.runUntilCrash(lost))
                try world.passTime()
            }
            // With an attempt, another person's command waits for the ledger's row; without one, the same person's
            // waits for its order.
            let next = try world.handIn(Self.modify(id, "next"), as: isBegun ? "bo@example.com" : "ana@example.com")
            func requeuedKeys() throws -> [String] {
                guard case .deferred = try world.step(next).disposition else { throw UnexpectedStep() }
                return try world.acme.connection.run(
                    "SELECT key FROM pipeline.parked WHERE group_name = 'defect-submitter' AND next_at <= now()"
                ).decode(String.self)
            }
            #expect(try requeuedKeys() == [], "it may be in progress")
            try world.acme.connection.run([
                "UPDATE defect.attempt SET lease_until = now() - interval '1 hour'",
                "UPDATE defect.command SET handed_in_at = now() - interval '1 hour'",
            ])
            #expect(try requeuedKeys() == ["/users/ana@example.com/DefectCommand/\(lost.id.text)"])
            // A deferred command is not re-queued.
            try world.acme.connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 hour'")
            #expect(try requeuedKeys() == [])
            try await world.finish(lost)
            try await world.finish(next)
            #expect(world.compass.record(id)?.fields["Headline"] == "next" && world.compass.saveCount(id) == 3)
            try world.expectNothingOpen()
        }
    }

    private struct UnexpectedStep: Error {}
}

extension CommandWorld {
    /// Checks the rows of `defect.command`: records, and whether they wait.
    fileprivate mutating func expectOrder(
        _ expected: [(ObjectReference, String?, Bool)], _ location: SourceLocation = #_sourceLocation
    ) throws {
        let rows = try acme.connection.run(
            """
            SELECT c.command_id, c.record, c.is_waiting FROM defect.command c
            JOIN store.object o ON o.environment_id = c.environment_id AND o.realm_id = c.realm_id
                AND o.kind = \(Kind.defectCommand) AND o.id = c.command_id AND o.edit_position = c.edit_position
            ORDER BY c.edit_position
            """
        ).decode(UUID.self, String?.self, Bool.self).map { "\($0.text) \($1 ?? "-") \($2)" }
        #expect(rows == expected.map { "\($0.0.id.text) \($0.1 ?? "-") \($0.2)" }, sourceLocation: location)
    }

    fileprivate mutating func commandIDs() throws -> Set<UUID> {
        Set(
            try acme.connection.run(
                "SELECT id FROM store.object WHERE kind = \(Kind.defectCommand) AND NOT deleted"
            ).decode(UUID.self))
    }
}
