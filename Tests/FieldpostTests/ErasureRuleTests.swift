import Model
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct ErasureRuleTests {
    private func action(
        _ kind: Kind, isOwnID: Bool = false, isShared: Bool = false, references: [String] = []
    ) -> ErasureRule.Action {
        ErasureRule.action(kind, isOwnID: isOwnID, isShared: isShared, references: references)
    }

    @Test func tasksStayWithoutThePerson() {
        #expect(action(.fieldTask, references: ["assignee"]) == .clear(["assignee"]))
        #expect(action(.fieldTask) == .keep)
    }

    @Test(arguments: [Kind.realms, .personLookup, .membership, .share, .sharedItem, .notice])
    func relationsAreDeleted(kind: Kind) {
        #expect(action(kind) == .delete)
    }

    @Test(arguments: [Kind.person, .location]) func onlyOwnObjectsAreDeleted(kind: Kind) {
        #expect(action(kind, isOwnID: true) == .delete)
        #expect(action(kind) == .keep)
    }

    @Test func notesOfThePersonAreDeleted() {
        #expect(action(.taskNote, references: ["author"]) == .delete)
        #expect(action(.taskNote) == .keep, "a note of another person that mentions the person")
    }

    @Test func textsOfOthersAreKept() {
        #expect(action(.note) == .keep)
        #expect(action(.note, isShared: true) == .delete, "a copy that was shared with the person or by them")
    }

    @Test(arguments: [(Kind.deletedObject, "recipient"), (.endedShare, "owner")])
    func historyOfShareWithThePersonIsDeleted(kind: Kind, field: String) {
        #expect(action(kind, references: [field]) == .delete)
        #expect(action(kind) == .keep, "a note of others that mentions the person")
    }

    @Test func mentionEscapesTheAddress() {
        #expect(
            ErasureRule.mention(of: "a.na+1@example.com", id: nil)
                == #"(?<![a-z0-9._%+-])a\.na\+1\@example\.com(?![a-z0-9-]|\.[a-z0-9])"#)
        #expect(ErasureRule.mention(of: "a@b.c", id: "0b7f").hasSuffix("|0b7f"))
    }
}
