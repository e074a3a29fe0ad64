import Essentials
import Foundation
import Model
import TestSupport
import Testing

/// One JSON file per type and version: stored data can be decoded permanently and round-trips without loss.
@Suite struct GoldenFileTests {
    @Test func everyGoldenFileRoundTrips() throws {
        for kind in Kind.allCases {
            let type: any KindFields.Type = try #require(kind.row.fields)
            try expectUnchanged(type, kind)
        }
    }

    /// A renamed kind has no file, and its file no kind.
    @Test func everyGoldenFileBelongsToAKind() throws {
        let folder = projectFolder.appendingPathComponent("Tests/ModelTests/Golden").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".v1.json") }
        #expect(Set(names) == Set(Kind.allCases.map { "\($0.rawValue).v1.json" }))
    }

    @Test func everyKindHasItsOwnRow() {
        #expect(Set(Kind.allCases.map { $0.row.fields.map { ObjectIdentifier($0) } }).count == Kind.allCases.count)
    }

    @Test func goldenFilesHaveEveryField() throws {
        for kind in Kind.allCases {
            let data = try golden("\(kind.rawValue).v1")
            let fields = try #require(try canonical(data) as? [String: Any])
            #expect(Set(kind.fieldNames) == Set(fields.keys), "\(kind)")
            #expect(kind.objection(to: Array(data)) == nil, "\(kind)")
        }
    }

    @Test func absentAndNullFieldsHaveDefaults() throws {
        let json = #"{"status":"draft","text":null,"reporting":null,"timeType":null,"entryDate":null,"new":[1]}"#
        #expect(try JSONDecoder().decode(TimeEntry.self, from: Data(json.utf8)) == TimeEntry())
        #expect(try JSONDecoder().decode(TimeEntry.self, from: Data("{}".utf8)) == TimeEntry(status: .draft))
        let line = #"{"entry":"\#(UUID())","status":"invalid","timestamp":"2015-03-30T12:00:00.007Z"}"#
        #expect(try JSONDecoder().decode(TimeEntryStatus.self, from: Data(line.utf8)).code == nil)
        let context = try JSONDecoder().decode(ReportingContext.self, from: Data(#"{"name":"Kind"}"#.utf8))
        #expect(context.visible && !context.readOnly && !context.required)
    }

    /// With both decoders.
    @Test func absentAndNullFlagsAreFalseAndListsEmpty() throws {
        try expectDefaults(Defect.self, .defect, ["isAssignedToMe", "isReportedByMe"]) {
            ($0.isAssignedToMe, $0.isReportedByMe) = (false, false)
        }
        try expectDefaults(FieldTask.self, .fieldTask, ["isCompleted"]) { $0.isCompleted = false }
        try expectDefaults(Notice.self, .notice, ["isRead"]) { $0.isRead = false }
        try expectDefaults(RealmRegistration.self, .realms, ["isInitialized"]) { $0.isInitialized = false }
        try expectDefaults(ReportingTemplate.self, .reportingTemplate, ["reportingContexts"]) {
            $0.reportingContexts = []
        }
        try expectDefaults(ReportingTreeNode.self, .reportingTreeNode, ["hasDependencies", "dependencies"]) {
            ($0.hasDependencies, $0.dependencies) = (false, [])
        }
        try expectDefaults(User.self, .user, ["reportingTemplates"]) { $0.reportingTemplates = [] }
    }

    private func expectDefaults<Fields: Decodable & Equatable>(
        _ type: Fields.Type, _ kind: Kind, _ names: [String], _ change: (inout Fields) -> Void
    ) throws {
        let data = try golden("\(kind.rawValue).v1")
        var expected = try JSONDecoder().decode(type, from: data)
        change(&expected)
        for value in [nil, NSNull()] {
            var fields = try #require(try canonical(data) as? [String: Any])
            for name in names { fields[name] = value }
            let changed = try JSONSerialization.data(withJSONObject: fields)
            #expect(try JSONDecoder().decode(type, from: changed) == expected)
            #expect(try JSONObject(Array(changed)).decoded(as: type) == expected)
        }
    }

    /// An integration may have stored it; it is decoded nevertheless.
    @Test func sectionHasItemsOrRootNode() throws {
        func context(_ section: String) -> Data {
            Data(#"{"name":"Kind","sections":[{"name":"All"\#(section)}]}"#.utf8)
        }
        let (items, root) = (#","items":["\#(UUID())"]"#, #","rootNode":"\#(UUID())""#)
        for section in [items, root, items + #","rootNode":null"#] {
            #expect(Kind.reportingContext.objection(to: Array(context(section))) == nil)
        }
        let objection = Kind.reportingContext.objection(to: Array(context(items + root)))
        #expect(objection == "'sections[0]' has both 'items' and 'rootNode'; only one of them is allowed")
        #expect(try JSONDecoder().decode(ReportingContext.self, from: context(items + root)).sections.count == 1)
    }

    @Test func unknownStatusThrows() {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TimeEntry.self, from: Data(#"{"status":"lost"}"#.utf8))
        }
    }

    private func expectUnchanged<Fields: KindFields>(_ type: Fields.Type, _ kind: Kind) throws {
        let data = try golden("\(kind.rawValue).v1")
        let written = try JSONEncoder().encode(try JSONDecoder().decode(type, from: data))
        #expect(try canonical(written) == canonical(data), "\(kind.rawValue)")
    }
}

func canonical(_ json: Data) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: json) as? NSDictionary)
}
