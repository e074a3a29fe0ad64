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

/// How many commands a person keeps, and whose turn it is.
@Suite(.ownThreads) struct OrderTests {
    private static func modify(_ id: String, _ headline: String = "new") -> DefectCommand {
        DefectCommand(operation: .modify, record: id, fields: ["Headline": headline])
    }

    /// The database follows whatever is written of commands.
    @Test func theDatabaseKnowsTheirOrder() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
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
            // Compaction removes tombstones; whatever goes otherwise goes here too.
            try world.acme.connection.run("DELETE FROM store.object WHERE kind = \(Kind.defectCommand)")
            try world.expectOrder([])
        }
    }

    /// Those at their end go, the oldest first; what waits, and what is not handed in, stays.
    @Test func aPersonKeepsABoundedNumberOfThem() async throws {
        try await CommandWorld.run { world in
            let ended = (0..<OrderStore.endedMax + 5).map { _ in UUID() }
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
            #expect(try world.commandIDs().isSuperset(of: ended), "somebody else's")
            _ = try await world.perform(DefectCommand(operation: .delete, record: "SAMPL00000008"))
            let left = try world.commandIDs()
            #expect(left.isDisjoint(with: ended.prefix(5)) && left.isSuperset(of: ended.dropFirst(5)))
            #expect(left.contains(draft) && left.contains(waiting.id))
        }
    }

    /// An operator has discarded the key of a command that was begun, or of one that was not: what waits for its record
    /// does not wait for ever.
    @Test(arguments: [true, false]) func aCommandThatNobodyLooksAfterIsLookedAtAgain(isBegun: Bool) async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let lost = try world.handIn(Self.modify(id, "lost"))
            if isBegun {
                world.gate.die(after: 2)
                #expect(try await world.dies(lost))
                try world.passTime()
            }
            // Of somebody else, who waits for the ledger's row; of the same person, whose turn it is not.
            let next = try world.handIn(Self.modify(id, "next"), as: isBegun ? "bo@example.com" : "ana@example.com")
            func look() throws -> [String] {
                guard case .park = try world.step(next).disposition else { throw Impossible() }
                return try world.acme.connection.run(
                    "SELECT key FROM pipeline.parked WHERE group_name = 'defect-submitter' AND next_at <= now()"
                ).decode(String.self)
            }
            #expect(try look() == [], "somebody may look after it")
            try world.acme.connection.run([
                "UPDATE defect.attempt SET lease_until = now() - interval '1 hour'",
                "UPDATE defect.command SET handed_in_at = now() - interval '1 hour'",
            ])
            #expect(try look() == ["/users/ana@example.com/DefectCommand/\(lost.id.text)"])
            // One that waits by itself is left alone.
            try world.acme.connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 hour'")
            #expect(try look() == [])
            try await world.finish(lost)
            try await world.finish(next)
            #expect(world.standIn.record(id)?.fields["Headline"] == "next" && world.standIn.saveCount(id) == 3)
            try world.expectNothingOpen()
        }
    }

    private struct Impossible: Error {}
}

extension CommandWorld {
    /// What the database knows of commands: their records, and whether they wait.
    fileprivate mutating func expectOrder(
        _ expected: [(Place, String?, Bool)], _ place: SourceLocation = #_sourceLocation
    ) throws {
        let rows = try acme.connection.run(
            """
            SELECT c.command_id, c.record, c.is_waiting FROM defect.command c
            JOIN store.object o ON o.environment_id = c.environment_id AND o.realm_id = c.realm_id
                AND o.kind = \(Kind.defectCommand) AND o.id = c.command_id AND o.edit_position = c.edit_position
            ORDER BY c.edit_position
            """
        ).decode(UUID.self, String?.self, Bool.self).map { "\($0.text) \($1 ?? "-") \($2)" }
        #expect(rows == expected.map { "\($0.0.id.text) \($0.1 ?? "-") \($0.2)" }, sourceLocation: place)
    }

    fileprivate mutating func commandIDs() throws -> Set<UUID> {
        Set(
            try acme.connection.run(
                "SELECT id FROM store.object WHERE kind = \(Kind.defectCommand) AND NOT deleted"
            ).decode(UUID.self))
    }
}
