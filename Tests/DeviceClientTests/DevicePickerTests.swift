import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The picker of a device's copy.
@Suite(.ownThreads) struct DevicePickerTests {
    private typealias Held = HeldContents

    private let own: RealmPath
    private let catalogue = Held.id(3)
    private let template = Held.id(10)
    private let context = Held.id(11)
    private let root = Held.id(12)
    private let roof = Held.id(13)
    private let wall = Held.id(14)
    private let retired = Held.id(15)

    init() throws { own = try RealmPath.user("ana@example.com") }

    private func contents() throws -> [RealmPath: RealmContent] {
        var contents: [RealmPath: RealmContent] = [:]
        let user = User(
            email: "ana@example.com", name: "Ana", catalogue: catalogue, reportingTemplates: [template, Held.id(99)])
        try contents.put(.user, Held.id(9), user, in: own)
        let work = ReportingTemplate(name: "Work", type: "project", reportingContexts: [context])
        try contents.put(.reportingTemplate, template, work, in: own)
        let part = ReportingContext(
            name: "Part", required: true, sections: [.init(name: "All", showCount: 1, rootNode: root)])
        try contents.put(.reportingContext, context, part, in: own)
        try contents.put(.reportingTreeNode, root, ReportingTreeNode(name: "parts"), in: .catalogue(catalogue))
        for (id, name) in [(roof, "Roof"), (wall, "Wall")] {
            try contents.put(
                .reportingTreeNode, id, ReportingTreeNode(name: name, parent: root), in: .catalogue(catalogue))
        }
        try contents.put(.reportingTreeNode, retired, ReportingTreeNode(name: "Yard", parent: root), in: own)
        // Another catalogue's nodes are not the person's.
        try contents.put(
            .reportingTreeNode, Held.id(16), ReportingTreeNode(name: "Other", parent: root), in: .catalogue(Held.id(4)))
        return contents
    }

    private func entry(_ nodes: UUID...) -> TimeEntry {
        TimeEntry(
            reportingTemplate: template, reporting: nodes.map { ReportingSelection(context: context, node: $0) })
    }

    @Test func pickerHasTheChoicesOfTheCopy() throws {
        let contents = try contents()
        let picker = try #require(ReportingPicker(ofPerson: own, in: contents))
        #expect(picker.templates.map(\.fields.name) == ["Work"])
        let choice = try #require(picker.form(for: entry()).choices.first)
        #expect(choice.sections.map(\.options) == [choice.options(matching: "")])
        #expect(choice.sections.flatMap(\.options).map(\.title) == ["Roof", "Wall"])
        #expect(choice.sections.map(\.shownCount) == [1])
        #expect(picker.form(for: entry(wall)).problems.isEmpty)
        #expect(picker.form(for: entry(retired)).problems.map(\.code) == [.nodeUnavailable])
        #expect(picker.title(of: retired) == "Yard")
    }

    @Test func incompleteCopyOffersNothing() throws {
        var contents = try contents()
        contents[.catalogue(catalogue)] = nil
        let picker = try #require(ReportingPicker(ofPerson: own, in: contents))
        #expect(picker.form(for: entry()).choices.map(\.sections) == [[]])
        contents[own]?[ObjectID(kind: .user, id: Held.id(9))] = nil
        #expect(ReportingPicker(ofPerson: own, in: contents) == nil)
        #expect(ReportingPicker(ofPerson: own, in: [:]) == nil)
    }

    /// Members that only newer versions define do not hide an object; an invalid object is missing.
    @Test func unreadableObjectsAreMissing() throws {
        var contents = try contents()
        let newer = #"{"name":"Part","sections":[{"name":"All","rootNode":"\#(root.text)","colour":7}],"icon":1}"#
        contents.hold(.reportingContext, context, Array(newer.utf8), in: own)
        contents.hold(.reportingTreeNode, wall, Array(#"{"name":7}"#.utf8), in: .catalogue(catalogue))
        let picker = try #require(ReportingPicker(ofPerson: own, in: contents))
        let choice = try #require(picker.form(for: entry()).choices.first)
        #expect(choice.options(matching: "").map(\.title) == ["Roof"] && !choice.isRequired)
        contents.hold(.reportingContext, context, Array("[]".utf8), in: own)
        #expect(ReportingPicker(ofPerson: own, in: contents)?.templates.isEmpty == true)
    }
}
