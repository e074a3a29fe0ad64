import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// The decision about a note, from every relevant state.
@Suite(.ownThreads) struct NoteRuleTests {
    /// Realms: 1 `/manager`, 2 `/archive`, 3 and 4 teams.
    private func facts(
        _ sides: [Int32: (String?, Int64)], in realm: Int32?? = .none, isOverLimit: Bool = false,
        task: NoteFacts<CanonicalJSON>.TaskState = .existing(copyRealm: 3)
    ) throws -> NoteFacts<CanonicalJSON> {
        let sides = try sides.mapValues { text, position in
            NoteFacts<CanonicalJSON>.Side(fields: try text.map { try Self.fields($0) }, editPosition: position)
        }
        let registration = realm.map { NoteFacts<CanonicalJSON>.Registration(realm: $0, isOverLimit: isOverLimit) }
        return NoteFacts<CanonicalJSON>(manager: 1, archive: 2, sides: sides, registration: registration, task: task)
    }

    private static func fields(_ text: String) throws -> CanonicalJSON { try CanonicalJSON("{\"text\":\"\(text)\"}") }

    @Test(arguments: [Int32(1), 3, 4]) func newNoteIsCopied(realm: Int32) throws {
        let decision = NoteRule.decide(try facts([realm: ("a", 7)]))
        #expect(decision == .copied(try Self.fields("a"), realm: 3))
    }

    @Test func laterEditWins() throws {
        for (manager, copy, expected) in [(Int64(7), Int64(9), "b"), (9, 7, "a"), (0, 0, "a")] {
            let decision = NoteRule.decide(try facts([1: ("a", manager), 3: ("b", copy)], in: 3))
            #expect(decision == .copied(try Self.fields(expected), realm: 3))
        }
    }

    @Test func deletionOfEitherSideWins() throws {
        #expect(NoteRule.decide(try facts([1: (nil, 7), 3: ("b", 9)], in: 3)) == .deleted)
        #expect(NoteRule.decide(try facts([1: ("a", 9), 3: (nil, 7)], in: 3)) == .deleted)
        let lost = NoteRule.decide(try facts([1: ("a", 9)], in: 3))
        #expect(lost == .copied(try Self.fields("a"), realm: 3), "missing without a tombstone")
        #expect(NoteRule.decide(try facts([:], in: 3)) == .deleted)
        #expect(NoteRule.decide(try facts([1: (nil, 7)])) == .unchanged)
        #expect(NoteRule.decide(try facts([:])) == .unchanged)
    }

    /// Another object under the id of a registered note is not its content.
    @Test func objectInAnotherRealmIsIgnored() throws {
        let decision = NoteRule.decide(try facts([1: ("a", 7), 3: ("a", 0), 4: ("x", 99)], in: 3))
        #expect(decision == .copied(try Self.fields("a"), realm: 3))
    }

    @Test func noteFollowsItsTask() throws {
        let sides: [Int32: (String?, Int64)] = [1: ("a", 7), 3: ("a", 0)]
        let a = try Self.fields("a")
        #expect(NoteRule.decide(try facts(sides, in: 3, task: .existing(copyRealm: 4))) == .copied(a, realm: 4))
        #expect(NoteRule.decide(try facts(sides, in: 3, task: .existing(copyRealm: nil))) == .copied(a, realm: nil))
        #expect(NoteRule.decide(try facts(sides, in: 3, task: .archived)) == .archived(a))
        #expect(NoteRule.decide(try facts(sides, in: 3, task: .deleted)) == .deleted)
        #expect(NoteRule.decide(try facts(sides, in: 3, task: .unknown)) == .deleted)
        #expect(NoteRule.decide(try facts([1: ("a", 7)], task: .unknown)) == .unchanged)
    }

    @Test func noteOverTheLimitIsDeletedUnlessArchived() throws {
        #expect(NoteRule.decide(try facts([1: ("a", 7)], in: .some(nil), isOverLimit: true)) == .deleted)
        let archived = NoteRule.decide(try facts([1: ("a", 7)], in: .some(nil), isOverLimit: true, task: .archived))
        #expect(archived == .archived(try Self.fields("a")))
    }
}
