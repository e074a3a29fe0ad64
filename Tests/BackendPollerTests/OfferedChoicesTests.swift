import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Choices are offered only with their nodes: no context or template is visible before the nodes it refers to.
@Suite(.ownThreads) struct OfferedChoicesTests {
    private typealias World = PollHandlerTests
    private static let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)
    private static let email = "ana@example.com"
    private static func own() throws -> RealmPath { try .user(email) }

    @Test func templateIsOfferedAfterItsNodes() throws {
        var acme = try World.environment()
        let first = World.data(["P1"], below: "Project")
        try poll(first, 1, &acme)
        try World.settle(&acme)
        #expect(try offered(&acme) == first.templates.map(\.id))

        // Vehicles, one of which is required for a new kind of entry, and a list of frequent choices.
        var second = World.data(["P1", "P2"], below: "Project")
        let (root, car, context, template) = (UUID(), UUID(), UUID(), UUID())
        second.nodes += [
            Identified(id: root, fields: ReportingTreeNode(name: "Vehicle")),
            Identified(id: car, fields: ReportingTreeNode(referenceId: "C", name: "Car", parent: root)),
        ]
        let all = ReportingContext.Section(name: "All", rootNode: root)
        second.contexts.append(
            Identified(id: context, fields: ReportingContext(name: "Vehicle", required: true, sections: [all])))
        second.templates.append(
            Identified(
                id: template, fields: ReportingTemplate(name: "Trip", type: "trip", reportingContexts: [context])))
        let often = ReportingContext.Section(name: "Often", items: second.nodes.suffix(3).map(\.id))
        second.contexts[0].fields.sections.append(often)
        try poll(second, 2, &acme)
        try expectNoDangling(&acme)
        #expect(try offered(&acme) == first.templates.map(\.id))
        #expect(try World.polls(&acme).map(\.run) == [Poll.repeatRequestedRun])

        // The next run compares the person again, in addition to others.
        let run = PollRunState(run: Poll.repeatRequestedRun, dueAt: World.time(2), finishedRun: 2)
        let mode = ScheduleRule.PollMode(isIncremental: true, isFullDue: false)
        #expect(
            ScheduleRule.polls(of: [Self.email], known: [Self.email: run], mode: mode)
                == [Poll.changesPerson, Self.email])
        try poll(second, 3, &acme)
        try expectNoDangling(&acme)
        #expect(try offered(&acme) == first.templates.map(\.id), "its nodes are not published yet")
        try World.settle(&acme)
        try poll(second, 4, &acme)
        try expectNoDangling(&acme)
        #expect(try offered(&acme) == first.templates.map(\.id) + [template])
        #expect(try World.polls(&acme).map(\.run) == [4])
        #expect(try World.objects([.reportingContext], in: Self.own(), &acme).count == 2)
    }

    /// Choices that may originate from an unreadable row are kept; all others follow the back end, and are written
    /// once.
    @Test func otherChoicesChangeWhileRowIsUnreadable() throws {
        var acme = try World.environment()
        var whole = World.data(["P1", "P2"], below: "Project")
        let (context, template) = (UUID(), UUID())
        whole.contexts.append(Identified(id: context, fields: ReportingContext(name: "Vehicle", required: true)))
        whole.templates.append(
            Identified(
                id: template, fields: ReportingTemplate(name: "Trip", type: "trip", reportingContexts: [context])))
        for run in [1, 2] as [Int64] {
            try poll(whole, run, &acme)
            try World.settle(&acme)
        }

        // The row of P1 is unreadable, and so is the one that the second template needs.
        var partial = World.data(["P2", "P3"], below: "Project")
        partial.nodes[1].fields.name = "Harbour"
        partial.templates[0].fields.name = "Hours"
        partial.unreadable = [UnreadableRecord(list: "/projects", id: "P1", reason: "number: it is missing")]
        try poll(partial, 3, &acme)
        try World.settle(&acme)
        #expect(try names(.reportingTreeNode, &acme) == ["Project", "P1", "Harbour", "P3"])
        #expect(try names(.reportingContext, &acme) == ["Project", "Vehicle"])
        #expect(try names(.reportingTemplate, &acme) == ["Hours", "Trip"])
        #expect(try offered(&acme) == partial.templates.map(\.id) + [template])
        let position = try World.newest(&acme)
        try poll(partial, 4, &acme)
        try World.settle(&acme)
        #expect(try World.newest(&acme) == position, "it is written again")

        partial.unreadable = []
        try poll(partial, 5, &acme)
        try World.settle(&acme)
        #expect(try names(.reportingTreeNode, &acme) == ["Project", "Harbour", "P3"])
        #expect(try names(.reportingTemplate, &acme) == ["Hours"])
        #expect(try offered(&acme) == partial.templates.map(\.id))
    }

    private func names(_ kind: Kind, _ acme: inout TestEnvironment) throws -> Set<String> {
        let rows = try acme.connection.run(
            "SELECT fields->>'name' FROM realm.object WHERE kind = \(kind.rawValue) AND NOT deleted")
        return Set(try rows.map { try $0.value(0) })
    }

    private func poll(_ data: ReportingData, _ run: Int64, _ acme: inout TestEnvironment) throws {
        try World.nextRun(&acme, run)
        try World.poll(.data(data, [], Self.days), &acme)
    }

    private func offered(_ acme: inout TestEnvironment) throws -> [UUID] {
        let object = try #require(try World.objects([.user], in: Self.own(), &acme).first)
        let user = try object.decoded(as: User.self, by: JSONDecoder())
        return user?.reportingTemplates ?? []
    }

    /// Asserts that every offered template has its contexts, and every context its nodes.
    private func expectNoDangling(_ acme: inout TestEnvironment) throws {
        let decoder = JSONDecoder()
        let nodes = Set(
            try acme.connection.run("SELECT id FROM realm.object WHERE kind = 'ReportingTreeNode' AND NOT deleted").map
            {
                try $0.value(0) as UUID
            })
        let contexts = try World.objects([.reportingContext], in: Self.own(), &acme)
        for object in contexts {
            let context = try #require(try object.decoded(as: ReportingContext.self, by: decoder))
            for section in context.sections {
                #expect(nodes.isSuperset(of: (section.items ?? []) + [section.rootNode].compactMap(\.self)))
            }
        }
        for object in try World.objects([.reportingTemplate], in: Self.own(), &acme) {
            let template = try #require(try object.decoded(as: ReportingTemplate.self, by: decoder))
            #expect(Set(contexts.map(\.key.id)).isSuperset(of: template.reportingContexts))
        }
    }
}
