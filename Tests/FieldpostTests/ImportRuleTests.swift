import Essentials
import Foundation
import Model
import ObjectStore
import TestSupport
import Testing

@testable import Fieldpost

/// Import rules that need no database.
@Suite(.ownThreads) struct ImportRuleTests {
    /// All kinds, and the realms into which they are imported.
    @Test func importableKindsByRealm() {
        let realms: [Kind: [RealmClass.Name]] = [
            .user: [.user], .reportingTreeNode: [.user, .catalogue], .timeEntryStatus: [.user],
            .reportingContext: Kind.reportingContext.row.realms, .reportingTemplate: Kind.reportingTemplate.row.realms,
            .timeEntry: [.user], .person: [.common], .personLookup: [.common], .team: [.common],
            .membership: [.common], .location: [.user], .fieldTask: [.manager], .appointment: [.user], .note: [.user],
            .sharedItem: [.user], .share: [], .realms: [], .poll: [], .seenRecord: [], .notice: [.user], .defect: [],
            .defectPoll: [], .defectCommand: [], .defectAccount: [], .deliveryChoice: [], .deletedObject: [],
            .endedShare: [], .privateProfile: [.user], .taskNote: [], .writeCheckpoint: [],
        ]
        let fromBackend: Set<Kind> = [
            .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
        ]
        #expect(realms.count == Kind.allCases.count)
        for kind in Kind.allCases {
            for realm in RealmClass.Name.allCases {
                let objection = ImportRule.objection(to: kind, in: realm, hasBackend: false)
                #expect((objection == nil) == (realms[kind]?.contains(realm) == true), "\(kind) in \(realm.pattern)")
                if fromBackend.contains(kind) {
                    #expect(ImportRule.objection(to: kind, in: realm, hasBackend: true) != nil)
                }
            }
        }
    }

    @Test(
        arguments: [
            (Kind.fieldTask, RealmClass.Name.team, "task-fan-out"), (.fieldTask, .user, "task-fan-out"),
            (.fieldTask, .archive, "task-fan-out"), (.location, .manager, "location-fan-out"),
            (.location, .team, "location-fan-out"), (.appointment, .share, "share-fan-out"),
            (.note, .share, "share-fan-out"), (.share, .user, "share-fan-out"), (.share, .share, "share-fan-out"),
            (.realms, .users, "fieldpost environment invite"), (.poll, .user, "belong to services"),
            (.defect, .user, "defect-notifier"), (.defectPoll, .user, "belong to services"),
            (.defectCommand, .user, "submitted by people's devices"),
            (.defectAccount, .user, "PUT /v1/credentials/compass"),
        ]) func rejectionNamesCreator(kind: Kind, realm: RealmClass.Name, creator: String) throws
    {
        let reason = try #require(ImportRule.objection(to: kind, in: realm, hasBackend: false))
        #expect(reason.contains(creator))
    }

    @Test func progressShowsBarAndRate() {
        #expect(
            ImportProgress.text(bytes: 50, of: 100, lines: 3_000, problems: 0, nanoseconds: 2_000_000_000)
                == "[###############...............] 50 %, 3000 lines, 1500 per second")
        #expect(
            ImportProgress.text(bytes: 50, of: nil, lines: 3_000, problems: 2, nanoseconds: 0)
                == "3000 lines, 0 per second, 2 invalid")
    }

    @Test func problemsAreSortedByLine() {
        var problems = ImportProblems(retainedCountMax: 3)
        for line in [4, 6, 2, 9, 5] { problems.add("r\(line)", at: line) }
        #expect(problems.text() == "line 2: r2\nline 4: r4\nline 5: r5\nand 2 more\n")
        var none = ImportProblems(retainedCountMax: 0)
        none.add("a\u{1B}b", at: 1)
        #expect(none.text() == "and 1 more\n")
    }

    /// Each problem quotes an excerpt of the value, even if one character has many bytes.
    @Test func problemsTruncateLongValues() {
        let long = "x" + String(repeating: "\u{301}", count: 20_000)
        func object(_ name: String, _ kind: String) throws {
            var lines = ObjectLines(hasBackend: false, catalogue: .unloaded)
            let line = #"{"realm":"/manager","kind":"\#(kind)","id":"\#(UUID())","\#(name)":{"\#(long)":1}}"#
            _ = try lines.object(Array(line.utf8), in: nil)
        }
        let readings: [() throws -> Void] = [
            { try object("fields", "FieldTask") }, { try object("fields", long) }, { try object(long, "FieldTask") },
            {
                let file = Data(#"{"trees":[],"\#(long)":1}"#.utf8)
                throw ImportProblem(try JSONDecoder().decode(TreeFileShape.self, from: file).problems.text)
            },
        ]
        for (number, reading) in readings.enumerated() {
            let problem = #expect(throws: (any Error).self) { try reading() }
            let text = problem.map { "\($0)" } ?? ""
            #expect(text.unicodeScalars.contains("\u{301}"), "\(number)")
            #expect(text.utf8.count < 500, "\(number): \(text.utf8.count) bytes")
        }
    }

    // MARK: Lines

    @Test func linesOfAllLengthsAreRead() throws {
        let lengths = [0, 1, 65_535, 262_144, 262_145, 0, 3_000_000, 1, 1_048_575, 200_000, 200_000, 200_000, 7]
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("lines-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        for ending in ["\n", ""] {
            let text = lengths.map { String(repeating: "x", count: $0) }.joined(separator: "\n") + ending
            try text.write(to: folder, atomically: true, encoding: .utf8)
            var reader = try ImportSource(folder.path).lines()
            var read: [Int?] = []
            while let line = try reader.next() {
                read.append(line.bytes?.count)
                #expect(line.number == read.count)
            }
            #expect(read == lengths.map { $0 > LineReader.bytesMax ? nil : $0 })
            #expect(reader.bytesRead == text.utf8.count)
        }
    }
}
