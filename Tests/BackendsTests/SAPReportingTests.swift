import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct SAPReportingTests {
    typealias Fixture = SAPFixture

    @Test func personGetsOpenProjectsOfTheirTeams() async throws {
        try await Fixture.run { sap in
            let ana = try await sap.backend.reportingData(of: Fixture.ana)
            #expect(
                Set(ana.nodes.compactMap(\.fields.referenceId)) == ["1000001", "P1", "P2", "P1.1", "P1.2", "P2.1"])
            let bo = try await sap.backend.reportingData(of: Fixture.bo)
            #expect(Set(bo.nodes.compactMap(\.fields.referenceId)) == ["1000001", "P1", "P1.1", "P1.2"])
            // Objects that two people share have the same ids.
            #expect(Set(bo.nodes.map(\.id)).isSubset(of: ana.nodes.map(\.id)))
            #expect(ana == (try await sap.backend.reportingData(of: Fixture.ana)))
        }
    }

    @Test func treesAreConsistent() async throws {
        try await Fixture.run { sap in
            let data = try await sap.backend.reportingData(of: Fixture.ana)
            var objects = ReportingObjects()
            for node in data.nodes { objects.nodes[node.id] = node.fields }
            for context in data.contexts { objects.contexts[context.id] = context.fields }
            for template in data.templates { objects.templates[template.id] = template.fields }
            #expect(objects.danglingReferences == [])
            #expect(data.contexts.map(\.fields.name) == ["Customer", "Project", "Accounting code"])
            #expect(data.contexts.allSatisfy { $0.fields.required })
            #expect(data.templates.map(\.fields.type) == ["project"])
            #expect(data.templates[0].fields.reportingContexts == data.contexts.map(\.id))
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let piers = try #require(data.nodes.first { $0.fields.referenceId == "P1.1" })
            #expect(piers.fields.hasDependencies && piers.fields.dependencies.map { names[$0] } == ["Harbour"])
            let overhead = try #require(data.nodes.first { $0.fields.referenceId == "P2" })
            #expect(overhead.fields.dependencies.map { names[$0] } == ["Internal"])
        }
    }

    /// A project of an unreadable customer is missing, as the customer is, and is not listed as internal.
    @Test func projectOfUnreadableCustomerIsNotInternal() async throws {
        try await Fixture.run { sap in
            try await sap.post("/sandbox/switches", #"{"unreadableChoice": "1000001"}"#)
            let data = try await sap.backend.reportingData(of: Fixture.ana)
            #expect(data.unreadable.count == 1)
            #expect(Set(data.nodes.compactMap(\.fields.referenceId)) == ["P2", "P2.1"])
        }
    }

    @Test func lastUsedNodeIsSuggestedFirst() async throws {
        try await Fixture.run { sap in
            #expect(try await sap.backend.reportingData(of: Fixture.ana).contexts[2].fields.sections.count == 1)
            _ = try await sap.backend.create(Fixture.submission(on: "2015-01-05", element: "P1.2"))
            _ = try await sap.backend.create(Fixture.submission(on: "2015-04-01", element: "P1.1"))
            _ = try await sap.backend.create(Fixture.submission(on: "2015-04-03", element: "P2.1"))
            let data = try await sap.backend.reportingData(of: Fixture.ana)
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let suggestions = data.contexts.map { $0.fields.sections[0] }
            #expect(suggestions.map(\.name) == ["Suggestions", "Suggestions", "Suggestions"])
            #expect(suggestions.allSatisfy { $0.showCount == 5 && $0.rootNode == nil })
            #expect(
                suggestions.map { $0.items?.map { names[$0] } } == [
                    ["Internal", "Ægir & Sons"], ["Overhead", "Harbour"], ["Meetings", "Piers"],
                ])
        }
    }

    @Test func accountingCodeDeterminesSelections() async throws {
        try await Fixture.run { sap in
            let data = try await sap.backend.reportingData(of: Fixture.ana)
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let selections = data.selections(for: ["Accounting code": "P1.2"])
            #expect(selections.map(\.context) == data.contexts.map(\.id))
            #expect(selections.map { names[$0.node] } == ["Ægir & Sons", "Harbour", "Cranes"])
            #expect(data.selections(for: ["Accounting code": "gone"]).isEmpty)
        }
    }

    @Test func manyProjectsNeedSeveralFilters() async throws {
        try await Fixture.run(settings: { $0.pageRowsMax = 10 }) { sap in
            let projects = (100..<160).map { number in
                """
                {"projectUuid": "\(Fixture.guid(number))", "project": "Q\(number)", "description": "",
                 "elements": [{"projectElementUuid": "\(Fixture.guid(number + 1000))",
                 "projectElement": "Q\(number).1", "description": "x"}], "teamMembers": ["\(Fixture.guid(1))"]}
                """
            }
            let people = #"{"people": [], "customers": [], "projects": [\#(projects.joined(separator: ","))]}"#
            try await sap.post("/sandbox/organisation", people)
            let data = try await sap.backend.reportingData(of: Fixture.ana)
            // Three roots, the customer for projects without one, 60 projects, 60 accounting codes, and the 6 earlier
            // nodes.
            #expect(data.nodes.count == 130)
        }
    }
}

@Suite(.ownThreads) struct EntryMarkerTests {
    @Test func markerIsParsedFromNote() throws {
        let id = try #require(UUID(uuidString: "fbefbeff-ffff-4fff-bfff-fbefbeffffff"))
        let marker = EntryMarker.marker(of: id)
        #expect(marker == "#----____T_-___vvvv___w#")
        for text in ["Meeting", "#12#", nil, "a "] {
            let (found, foundMarker) = EntryMarker.split(note: EntryMarker.note(text: text, marker: marker))
            #expect(found == text && foundMarker == marker)
        }
    }

    /// Each of them joins the next or the previous character.
    @Test(arguments: [
        "a\u{600}", "\u{600}", "\u{6DD} \u{110BD}", "\u{301}", "e\u{301}", "🇩", "🛠\u{200D}", "👩🏽‍🚒", "\r\n", "\r", "กำ",
        "가",
        "a\u{600} ", "#\u{301}",
    ]) func markerIsFoundBehindAnyText(text: String) {
        let marker = EntryMarker.marker(of: UUID())
        let (found, foundMarker) = EntryMarker.split(note: EntryMarker.note(text: text, marker: marker))
        #expect(foundMarker == marker && (found ?? "").unicodeScalars.elementsEqual(text.unicodeScalars))
        #expect(EntryMarker.split(note: text + marker).marker == marker)
    }

    @Test(arguments: ["", "Meeting", "#abc#", "#not base64url, really!!#"]) func otherNotesAreText(note: String) {
        let (text, marker) = EntryMarker.split(note: note)
        #expect(marker == nil && (text ?? "") == note)
    }
}
