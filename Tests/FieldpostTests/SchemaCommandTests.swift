import Model
import TestSupport
import Testing

@testable import Fieldpost

/// `fieldpost schema generate powersync`. `Tests/PowerSyncConnectorTests/schema.test.mjs` executes its output.
@Suite(.ownThreads) struct SchemaCommandTests {
    private static let table = TableDescription(
        name: "Sample",
        fields: [
            .init(name: "title", form: .text), .init(name: "isDone", form: .boolean),
            .init(name: "length", form: .number), .init(name: "codes", form: .structure(.list(of: .text))),
        ])

    private static func generate(_ language: SchemaLanguage) throws -> String {
        let result = try fieldpost("schema", "generate", "powersync", "--language", language.rawValue)
        try #require(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        return result.output
    }

    @Test(arguments: SchemaSamples.all) func tableHasColumnsAndViews(sample: SchemaSamples.Sample) {
        let header = "// Generated: fieldpost schema generate powersync --language \(sample.language.rawValue)\n"
        #expect(sample.language.source(of: [Self.table]) == header + sample.text + "\n")
    }

    @Test func everyKindOfDevicesHasATable() {
        let names = Set(TableDescription.ofDevices.map(\.name))
        let others: Set<Kind> = [.realms, .poll, .defectPoll, .seenRecord, .writeCheckpoint]
        #expect(names == Set(Kind.allCases.filter { !others.contains($0) }.map(\.rawValue)))
        for table in TableDescription.ofDevices {
            #expect(table.fields.map(\.name) == Kind(rawValue: table.name)?.fieldNames)
            // The SDKs add the column of the id. Names are identifiers of each language.
            for name in table.fields.map(\.name) + [table.name] {
                #expect(name != "id" && name.wholeMatch(of: /[A-Za-z][A-Za-z0-9]*/) != nil, "\(table.name).\(name)")
            }
        }
    }

    @Test(arguments: SchemaLanguage.allCases) func outputHasAllTablesAndViews(language: SchemaLanguage) throws {
        let output = try Self.generate(language)
        #expect(output == language.source(of: TableDescription.ofDevices))
        for table in TableDescription.ofDevices {
            #expect(output.contains(table.name) || language == .sql, "\(table.name)")
            for view in table.views { #expect(output.contains("CREATE VIEW \"\(view.name)\" AS")) }
        }
        #expect(output.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }

    @Test func namesOfViewsAreUnique() {
        let tables = TableDescription.ofDevices
        let names = tables.map(\.name) + tables.flatMap(\.views).map(\.name)
        #expect(Set(names.map { $0.lowercased() }).count == names.count)
    }

    @Test func unknownLanguageListsTheAllowedOnes() throws {
        let result = try fieldpost("schema", "generate", "powersync", "--language", "cobol")
        #expect(result.status == 2 && result.output.isEmpty)
        #expect(result.errors.split(separator: "\n").count == 1)
        for language in SchemaLanguage.allCases { #expect(result.errors.contains("- \(language.rawValue)")) }
    }
}
