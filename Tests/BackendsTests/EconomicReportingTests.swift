import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct EconomicReportingTests {
    typealias Fixture = EconomicFixture

    private func references(_ data: ReportingData) -> Set<String> {
        Set(data.nodes.compactMap(\.fields.referenceId))
    }

    @Test func openProjectsAndActivitiesAreListed() async throws {
        try await Fixture.run { economic in
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            #expect(references(data) == ["11", "12", "13", "1", "2"])
            #expect(data == (try await economic.backend.reportingData(of: Fixture.bo)))
            #expect(data.contexts.map(\.fields.name) == ["Project", "Activity"])
            #expect(data.contexts.allSatisfy { $0.fields.required })
            #expect(data.templates[0].fields.reportingContexts == data.contexts.map(\.id))
            var objects = ReportingObjects()
            for node in data.nodes { objects.nodes[node.id] = node.fields }
            for context in data.contexts { objects.contexts[context.id] = context.fields }
            for template in data.templates { objects.templates[template.id] = template.fields }
            #expect(objects.danglingReferences == [])
        }
    }

    @Test func projectsAreBelowTheirMainProject() async throws {
        try await Fixture.run { economic in
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            let nodes = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields) })
            func above(_ name: String) -> String? {
                data.nodes.first { $0.fields.name == name }?.fields.parent.flatMap { nodes[$0]?.name }
            }
            #expect(above("Piers") == "Harbour" && above("Harbour") == "Project" && above("Overhead") == "Project")
            #expect(!nodes.values.contains { $0.name == "Empty group" })
        }
    }

    /// Project 11 allows activity 1 only; 12 and 13 have no activities of their own, so they allow all.
    @Test func activityDependsOnItsProjects() async throws {
        try await Fixture.run { economic in
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let diving = try #require(data.nodes.first { $0.fields.name == "Diving" }?.fields)
            let meetings = try #require(data.nodes.first { $0.fields.name == "Meetings" }?.fields)
            #expect(!diving.hasDependencies && diving.dependencies.isEmpty)
            #expect(meetings.hasDependencies && meetings.dependencies.map { names[$0] } == ["Cranes", "Overhead"])
        }
    }

    /// Project 12 is unreadable, and activity 3 belongs to all others: project 12 may not allow it.
    @Test func restrictedActivityKeepsProjectsWhileAnotherIsUnreadable() async throws {
        try await Fixture.run { economic in
            try await economic.post(
                "/sandbox/organisation",
                """
                {"employees": [], "projects": [], "activities": [{"number": 3, "name": "Survey", "isAccessible": true}],
                 "projectActivities": [{"number": 8, "projectNumber": 11, "activityNumber": 3},
                  {"number": 9, "projectNumber": 13, "activityNumber": 3}], "deletedProjects": []}
                """)
            try await economic.post("/sandbox/switches", #"{"unreadableChoice": "12"}"#)
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            #expect(data.unreadable.map(\.list) == ["/projects"])
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let survey = try #require(data.nodes.first { $0.fields.name == "Survey" }?.fields)
            #expect(survey.dependencies.map { names[$0] } == ["Piers", "Overhead"])
        }
    }

    @Test func lastUsedNodeIsSuggestedFirst() async throws {
        try await Fixture.run { economic in
            _ = try await economic.backend.create(Fixture.submission(on: "2015-01-05", project: "13"))
            _ = try await economic.backend.create(Fixture.submission(on: "2015-04-01", project: "12", activity: "2"))
            _ = try await economic.backend.create(Fixture.submission(on: "2015-04-03"))
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            let names = Dictionary(uniqueKeysWithValues: data.nodes.map { ($0.id, $0.fields.name) })
            let suggestions = data.contexts.map { $0.fields.sections[0] }
            #expect(
                suggestions.map { $0.items?.map { names[$0] } } == [["Piers", "Cranes"], ["Diving", "Meetings"]])
        }
    }

    @Test func deletedProjectIsNotListed() async throws {
        try await Fixture.run { economic in
            try await economic.post(
                "/sandbox/organisation",
                #"{"employees": [], "projects": [], "activities": [], "deletedProjects": [13]}"#)
            let data = try await economic.backend.reportingData(of: Fixture.ana)
            #expect(references(data) == ["11", "12", "1", "2"])
        }
    }
}
