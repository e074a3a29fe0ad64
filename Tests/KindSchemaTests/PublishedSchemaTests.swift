import Essentials
import Foundation
import ProjectDocuments
import TestSupport
import Testing

@testable import KindSchema

/// `deploy/kinds.schema.json` describes what the reader of schema files accepts.
@Suite(.ownThreads) struct PublishedSchemaTests {
    private let definitions: SchemaValue

    init() throws {
        let file = projectFolder.appending(path: "deploy/kinds.schema.json")
        definitions = try #require(try SchemaValue(Array(Data(contentsOf: file)))["$defs"])
    }

    private func names(_ definition: String) throws -> Set<String> {
        let members = try #require(definitions[definition]?["properties"]?.members)
        return Set(members.map(\.name))
    }

    private func choices<Choice: RawRepresentable & CaseIterable>(
        _ type: Choice.Type, _ schema: SchemaValue?
    ) -> Bool where Choice.RawValue == String {
        schema?["enum"] == .list(Choice.allCases.map { .text($0.rawValue) })
    }

    @Test func membersAreThoseOfTheReader() throws {
        #expect(try names("kind") == Set(KindDeclaration.memberNames))
        #expect(try names("permission") == ["who", "realms", "may", "fields"])
        #expect(try names("value") == Set(ValueSchema.keywords + ValueSchema.annotations))
    }

    @Test func choicesAreThoseOfTheReader() {
        let permission = definitions["permission"]?["properties"]
        #expect(choices(KindDeclaration.Writer.self, permission?["who"]?["items"]))
        #expect(choices(KindDeclaration.Act.self, permission?["may"]?["items"]))
        #expect(choices(KindDeclaration.RealmName.self, permission?["realms"]?["items"]))
        let kind = definitions["kind"]?["properties"]
        #expect(choices(KindDeclaration.RealmName.self, kind?["realms"]?["items"]))
        #expect(choices(KindDeclaration.IDs.self, kind?["ids"]))
        #expect(choices(ValueSchema.Format.self, definitions["value"]?["properties"]?["format"]))
        #expect(choices(ValueSchema.ValueType.self, definitions["type"]))
    }

    @Test func limitsAreThoseOfTheReader() {
        let bytes = definitions["kind"]?["properties"]?["maxBytes"]
        #expect(bytes?["minimum"] == .integer(KindDeclaration.bytesMaxRange.lowerBound))
        #expect(bytes?["maximum"] == .integer(KindDeclaration.bytesMaxRange.upperBound))
        #expect(bytes?["default"] == .integer(KindDeclaration.bytesMaxDefault))
        let pattern = definitions["value"]?["properties"]?["pattern"]
        #expect(pattern?["maxLength"] == .integer(Int64(Pattern.lengthMax)))
    }
}
