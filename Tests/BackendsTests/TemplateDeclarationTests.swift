import Foundation
import KeyedWorker
import TestSupport
import Testing

@testable import Backends

/// Problems of declarations and their messages.
@Suite(.ownThreads) struct TemplateDeclarationTests {
    /// One template with these contexts, and a list "l" with these nodes.
    private static func json(_ contexts: String, nodes: String? = nil, more: String = "") -> String {
        let lists = nodes.map { #"[{"name": "l", "nodes": [\#($0)]}]"# } ?? "[]"
        let template = #"{"key": "a", "name": "A", "type": "t", "contexts": [\#(contexts)]}"#
        return #"{"lists": \#(lists), "templates": [\#(template)\#(more)]}"#
    }

    private static let one = #"{"referenceId": "1"}"#
    private static let item = #"{"name": "X", "list": "l", "field": "WorkItem"}"#

    @Test(arguments: [
        (#"{"templates": []}"#, "templates: there are 0; allowed: 1 to 50"),
        (json(""), "template 'a': contexts: there are 0"),
        (
            #"{"templates": [{"key": "A b", "name": "", "type": "t", "contexts": []}]}"#,
            "template 'A b': a key is 1 to 32 small letters"
        ),
        (
            json(#"{"name": "X", "list": "unknown"}"#),
            "there is no list 'unknown'; available: customers, projects, wbsElements"
        ),
        (
            json(#"{"name": "X", "list": "wbsElements", "field": "WBSElement"}"#),
            "the choices of wbsElements depend on one of projects: add a context with that list before it"
        ),
        (
            json(#"{"name": "X", "list": "customers", "field": "WBSElement"}"#),
            "the choices of customers are recorded in no field, not in WBSElement"
        ),
        (json(#"{"name": "X", "list": "customers"}"#), "none of its contexts has a field"),
        (
            json(
                #"{"name": "X", "list": "l", "field": "TimeSheetTaskType"}"#, nodes: #"{"referenceId": "12345"}"#),
            "'12345' is longer than the 4 characters of TimeSheetTaskType"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "TaskType"}"#, nodes: one),
            "sap has no field 'TaskType'; available: WBSE"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "WorkItem", "preselected": ["2"]}"#, nodes: one),
            "preselected '2' is not in the list 'l'"
        ),
        (
            json(#"{"name": "X", "list": "l", "field": "WorkItem", "visible": false}"#, nodes: one),
            "a required choice that people cannot change needs a preselected value"
        ),
        (
            json(item, nodes: #"{"referenceId": "a"}, {"referenceId": "A"}"#),
            "list 'l': the referenceId 'a' occurs twice"
        ),
        (
            json(#"{"name": "X", "list": "l"}"#, nodes: one),
            "a declared list needs a field, otherwise the choice is not recorded"
        ),
        (
            json(item + #", {"name": "Y", "list": "l", "field": "WorkItem"}"#, nodes: one),
            "WorkItem is called 'X' in another context; a field has one name"
        ),
        (
            json(
                item, nodes: one,
                more: #", {"key": "b", "name": "B", "type": "t", "contexts": ["#
                    + #"{"name": "X", "list": "l", "field": "InternalOrder"}]}"#),
            "its name means WorkItem in another template; give it another name"
        ),
        (
            json(
                item, nodes: one,
                more: #", {"key": "b", "name": "B", "type": "t", "contexts": [{"name": "X", "list": "customers"}]}"#),
            "its name means WorkItem in another template; give it another name"
        ),
        (
            json(#"{"name": "X", "list": "customers"}, {"name": "x", "list": "projects"}"#),
            "the name 'x' occurs twice"
        ),
        (json(item, nodes: #"{"referenceId": "100"}, {"referenceId": "0100"}"#), "the number '100' occurs twice"),
        (json(#"{"name": "a/b", "list": "customers"}"#), "its name must not contain '/'"),
        (
            #"{"lists": [{"name": "projects", "nodes": []}], "templates": []}"#,
            "list 'projects': sap has a list of that name"
        ),
    ]) func invalidDeclarationIsReported(json: String, problem: String) throws {
        let problems = try TemplateTests.declarations(json).problems(for: SAPReporting.vocabulary)
        #expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }

    @Test func economicNeedsProjectAndActivity() throws {
        let json = Self.json(#"{"name": "P", "list": "projects", "field": "projectNumber"}"#)
        let problems = try TemplateTests.declarations(json).problems(for: EconomicReporting.vocabulary)
        #expect(problems == ["template 'a': a required context must have the field activityNumber"])
    }

    @Test(arguments: [
        #"{"templates": [], "list": []}"#, #"{"templates": [{"key": "a", "name": "A", "contexts": []}]}"#,
        json(#"{"name": "x", "list": "l", "readonly": true}"#),
    ]) func misspeltKeyIsRejected(json: String) throws {
        #expect(throws: DecodingError.self) { try TemplateTests.declarations(json) }
    }

    @Test func exampleIsValid() throws {
        let sap = try TemplateTests.declarations(TemplateTests.sap)
        #expect(sap.problems(for: SAPReporting.vocabulary) == [])
        let economic = try TemplateTests.declarations(TemplateTests.economic)
        #expect(economic.problems(for: EconomicReporting.vocabulary) == [])
        let again = try JSONDecoder().decode(TemplateDeclarations.self, from: JSONEncoder().encode(sap))
        #expect(again == sap)
    }
}
