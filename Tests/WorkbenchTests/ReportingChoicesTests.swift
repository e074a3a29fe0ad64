import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import Workbench

@Suite(.ownThreads) struct ReportingChoicesTests {
    private let objects: ReportingObjects
    private let template = StableID.uuid("template")

    /// Two projects of two customers; accounting code W is in both projects, as two elements.
    init() {
        let names = ["Customer", "Project", "Accounting code"]
        var objects = ReportingObjects()
        objects.templates = [
            template: ReportingTemplate(
                name: "Work", type: "project", reportingContexts: names.map { Self.id("context", $0) })
        ]
        for name in names {
            objects.contexts[Self.id("context", name)] = ReportingContext(
                name: name, required: true,
                sections: [ReportingContext.Section(name: "All", rootNode: Self.id("root", name))])
            objects.nodes[Self.id("root", name)] = ReportingTreeNode(name: name)
        }
        for number in ["1", "2"] {
            let nodes = [("Customer", "c", nil), ("Project", "p", "Customer"), ("Accounting code", "W-p", "Project")]
            for (context, prefix, before) in nodes {
                objects.nodes[Self.id(context, number)] = ReportingTreeNode(
                    referenceId: prefix + number, name: prefix, parent: Self.id("root", context),
                    hasDependencies: before != nil, dependencies: before.map { [Self.id($0, number)] } ?? [])
            }
        }
        self.objects = objects
    }

    @Test func aCodeBringsItsProjectAndCustomer() throws {
        let choices = ReportingChoices(objects, templates: [template])
        let choice = try #require(choices.choice(project: "p2", accountingCode: "W-p2"))
        #expect(choice.template == template)
        #expect(
            choice.reporting
                == ["Customer", "Project", "Accounting code"].map {
                    ReportingSelection(context: Self.id("context", $0), node: Self.id($0, "2"))
                })
        let entry = TimeEntry(
            reportingTemplate: choice.template, reporting: choice.reporting, entryDate: Day(daysSinceEpoch: 0),
            durationSeconds: 3600)
        #expect(EntryRules.problems(of: entry, in: objects) == [])
    }

    @Test func missingChoiceOnTheDeviceFails() {
        let choices = ReportingChoices(objects, templates: [template])
        #expect(choices.choice(project: "p1", accountingCode: "W-p2") == nil, "the code of another project")
        #expect(choices.choice(project: "p1", accountingCode: "W-p3") == nil)
        #expect(ReportingChoices(objects, templates: []).choice(project: "p1", accountingCode: "W-p1") == nil)
        var unreachable = objects
        unreachable.nodes[Self.id("Project", "1")]?.dependencies = []
        #expect(
            ReportingChoices(unreachable, templates: [template]).choice(project: "p1", accountingCode: "W-p1") == nil,
            "the customer is required and cannot be found")
    }

    @Test func theChoicesAreReadFromTheCopyOnceAllIsThere() throws {
        let own = try RealmPath.user("ana@example.com")
        let catalogue = StableID.uuid("catalogue")
        var copy = DeviceCopy()
        var list = try objects.contexts.map { try Self.change(.reportingContext, $0.key, $0.value) }
        list += try objects.templates.map { try Self.change(.reportingTemplate, $0.key, $0.value) }
        let user = User(email: "ana@example.com", name: "Ana", catalogue: catalogue, reportingTemplates: [template])
        list.append(try Self.change(.user, StableID.uuid("user"), user))
        _ = copy.apply(.objects(own, cursor: nil, list))
        _ = copy.apply(.checkpoint(position: 1, cursor: nil, cursors: [:]))
        #expect(ReportingChoices(copy) == nil, "the catalogue has not come yet")
        let nodes = try objects.nodes.map { try Self.change(.reportingTreeNode, $0.key, $0.value) }
        _ = copy.apply(.objects(.catalogue(catalogue), cursor: nil, nodes))
        _ = copy.apply(.checkpoint(position: 2, cursor: nil, cursors: [:]))
        #expect(ReportingChoices(copy)?.choice(project: "p1", accountingCode: "W-p1") != nil)
    }

    private static func id(_ kind: String, _ name: String) -> UUID { StableID.uuid(kind, name) }

    private static func change(_ kind: Kind, _ id: UUID, _ fields: some Encodable) throws -> SyncLine.Change {
        SyncLine.Change(
            id: ObjectID(kind: kind, id: id),
            object: DeviceObject(position: 1, fields: Array(try JSONEncoder().encode(fields))))
    }
}
