import Foundation
import Model
import TestSupport
import Testing

/// One JSON file per type and version: what was written once can be read for ever, and nothing is lost on the way.
@Suite struct GoldenFileTests {
    @Test func everyTypeReadsAndWritesItsFileUnchanged() throws {
        for kind in Kind.allCases {
            switch kind {
            case .realms: try expectUnchanged(RealmRegistration.self, kind)
            case .user: try expectUnchanged(User.self, kind)
            case .reportingTreeNode: try expectUnchanged(ReportingTreeNode.self, kind)
            case .reportingContext: try expectUnchanged(ReportingContext.self, kind)
            case .reportingTemplate: try expectUnchanged(ReportingTemplate.self, kind)
            case .timeEntry: try expectUnchanged(TimeEntry.self, kind)
            case .timeEntryStatus: try expectUnchanged(TimeEntryStatus.self, kind)
            case .person: try expectUnchanged(Person.self, kind)
            case .personLookup: try expectUnchanged(PersonLookup.self, kind)
            case .team: try expectUnchanged(Team.self, kind)
            case .membership: try expectUnchanged(Membership.self, kind)
            case .location: try expectUnchanged(Location.self, kind)
            case .fieldTask: try expectUnchanged(FieldTask.self, kind)
            case .share: try expectUnchanged(Share.self, kind)
            case .poll: try expectUnchanged(Poll.self, kind)
            case .seenRecord: try expectUnchanged(SeenRecord.self, kind)
            }
        }
    }

    @Test func theFilesHaveEveryField() throws {
        for kind in Kind.allCases {
            let data = try golden("\(kind.rawValue).v1")
            let fields = try #require(try canonical(data) as? [String: Any])
            #expect(Set(kind.fieldNames) == Set(fields.keys), "\(kind)")
            #expect(kind.objection(to: Array(data)) == nil, "\(kind)")
        }
    }

    @Test func whatIsAbsentOrNullHasAMeaning() throws {
        let json = #"{"status":"draft","text":null,"reporting":null,"timeType":null,"entryDate":null,"new":[1]}"#
        #expect(try JSONDecoder().decode(TimeEntry.self, from: Data(json.utf8)) == TimeEntry())
        #expect(try JSONDecoder().decode(TimeEntry.self, from: Data("{}".utf8)) == TimeEntry(status: .draft))
        let line = #"{"entry":"\#(UUID())","status":"invalid","timestamp":"2015-03-30T12:00:00.007Z"}"#
        #expect(try JSONDecoder().decode(TimeEntryStatus.self, from: Data(line.utf8)).code == nil)
        let context = try JSONDecoder().decode(ReportingContext.self, from: Data(#"{"name":"Kind"}"#.utf8))
        #expect(context.visible && !context.readOnly && !context.required)
    }

    /// Written by whoever; what is stored so is read all the same.
    @Test func aSectionShowsItemsOrWhatIsBelowANode() throws {
        func context(_ section: String) -> Data {
            Data(#"{"name":"Kind","sections":[{"name":"All"\#(section)}]}"#.utf8)
        }
        let (items, root) = (#","items":["\#(UUID())"]"#, #","rootNode":"\#(UUID())""#)
        for section in [items, root, items + #","rootNode":null"#] {
            #expect(Kind.reportingContext.objection(to: Array(context(section))) == nil)
        }
        let objection = Kind.reportingContext.objection(to: Array(context(items + root)))
        #expect(objection == "the section 'All' has 'items' and 'rootNode'; give one of them")
        #expect(try JSONDecoder().decode(ReportingContext.self, from: context(items + root)).sections.count == 1)
    }

    @Test func anUnknownStatusIsAnErrorAndNotADraft() {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TimeEntry.self, from: Data(#"{"status":"lost"}"#.utf8))
        }
    }

    private func expectUnchanged<Fields: Codable & Equatable>(_ type: Fields.Type, _ kind: Kind) throws {
        let data = try golden("\(kind.rawValue).v1")
        let written = try JSONEncoder().encode(try JSONDecoder().decode(type, from: data))
        #expect(try canonical(written) == canonical(data), "\(kind.rawValue)")
    }
}

func canonical(_ json: Data) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: json) as? NSDictionary)
}
