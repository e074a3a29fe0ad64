import Compass
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// Every action of the vendor's sample app, as a device's command.
@Suite(.ownThreads) struct CommandTests {
    private static let values = ["Headline": "The crane is blocked", "Severity": "3-Average"]

    @Test func commandCreatesDefect() async throws {
        try await CommandWorld.run { world in
            let done = try await world.perform(DefectCommand(operation: .create, fields: Self.values))
            #expect(done.status == .done && done.messages.isEmpty)
            let record = try #require(done.record.flatMap { world.compass.record($0) })
            #expect(record.fields["Submitter"] == "ana", "as the person themselves")
            #expect(world.compass.records("The crane is blocked").count == 1)
            try world.expectNothingOpen()
        }
    }

    @Test func commandModifiesDefect() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("Old")
            let done = try await world.perform(
                DefectCommand(
                    operation: .modify, record: id, fields: ["Headline": "New", "Description": "a\r\nb"],
                    base: ["Headline": "Old", "Severity": "3-Average"]))
            #expect(done.status == .done && done.record == id)
            #expect(world.compass.record(id)?.fields["Headline"] == "New")
            #expect(world.compass.saveCount(id) == 2)
            try world.expectNothingOpen()
        }
    }

    /// The request has the action's name, not the state.
    @Test func stateChangeUsesActionName() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let steps: [(String, [String: String], String)] = [
                ("Open", ["Owner": "bo"], "Opened"), ("Resolve", ["Resolution": "Fixed"], "Resolved"),
                ("Validate", [:], "Closed"),
            ]
            for (action, fields, state) in steps {
                let done = try await world.perform(
                    DefectCommand(operation: .changeState, record: id, actionName: action, fields: fields))
                #expect(done.status == .done, "\(action): \(done.messages)")
                #expect(world.compass.record(id)?.fields["State"] == state)
            }
            try world.expectNothingOpen()
        }
    }

    /// An action is not sent from a state that is not among its sources.
    @Test func actionIsRefusedOutsideItsSourceStates() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            for action in ["Validate", "Opened", "Modify", "Nonsense"] {
                let refused = try await world.perform(
                    DefectCommand(operation: .changeState, record: id, actionName: action))
                #expect(refused.status == .refused)
                #expect(
                    refused.messages == [
                        "Action '\(action)' is not allowed in state 'Submitted'; allowed: Assign, Open, Postpone"
                    ])
            }
            #expect(try await world.compass.stats()["edits"] ?? 0 == 0)
        }
    }

    @Test func deleteRemovesDefectAndIsIdempotent() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let mirror = try world.addMirror(of: id)
            for _ in 0..<2 {
                let done = try await world.perform(DefectCommand(operation: .delete, record: id))
                #expect(done.status == .done)
            }
            #expect(world.compass.record(id) == nil)
            #expect(try world.hasMirror(mirror) == false, "it is removed from the device immediately")
            #expect(try !world.hasMirrorRows())
            let again = try await world.perform(DefectCommand(operation: .delete, record: id, base: ["Headline": "H"]))
            #expect(again.status == .done)
            try world.expectNothingOpen()
        }
    }

    /// A list that depends on another field is read in a session, which saves nothing and is ended.
    @Test func choicesDependOnOtherFields() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            for (project, components) in [("Harbour", ["Cranes", "Piers"]), ("Overhead", ["Meetings"])] {
                let done = try await world.perform(
                    DefectCommand(
                        operation: .choices, record: id, fields: ["Project": project],
                        choicesOf: ["Component", "Headline", "Nothing", "Component"]))
                #expect(done.status == .done && done.choices == ["Component": components, "Headline": []], "\(done)")
            }
            let ofNew = try await world.perform(
                DefectCommand(operation: .choices, choicesOf: ["Severity", "Priority"]))
            #expect(ofNew.choices?["Severity"] == CompassSchema.severities && ofNew.record == nil)
            #expect(world.compass.saveCount(id) == 1)
            try world.expectNothingOpen()
        }
    }

    /// Including fields that the action or another field's value makes mandatory.
    @Test func mandatoryFieldsAreCheckedInTheSession() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H", [FieldValue("Owner", "bo")])
            let cases: [(DefectCommand, [String])] = [
                (DefectCommand(operation: .create, fields: ["Headline": " "]), ["Headline", "Severity"]),
                (DefectCommand(operation: .modify, record: id, fields: ["Headline": ""]), ["Headline"]),
                (DefectCommand(operation: .modify, record: id, fields: ["Severity": "1-Critical"]), ["Priority"]),
                (DefectCommand(operation: .changeState, record: id, actionName: "Assign"), ["Priority"]),
            ]
            for (command, names) in cases {
                let refused = try await world.perform(command)
                #expect(refused.status == .refused)
                #expect(refused.messages == names.map { "\($0) must have a value" })
            }
            #expect(try await world.compass.stats()["commits"] == 1, "none was tried")
            let own = try await world.perform(
                DefectCommand(operation: .create, fields: ["Headline": "H2", "Severity": "1-Critical"]))
            #expect(own.status == .refused && own.messages.contains { $0.contains("Priority") }, "Compass's message")
            #expect(world.compass.records("H2").isEmpty)
            try world.expectNothingOpen()
        }
    }

    /// A rejection by the tracker's rules keeps its text, and no session stays open.
    @Test func rejectionsOfCompassAreReportedUnchanged() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let cases: [(DefectCommand, String)] = [
                (DefectCommand(operation: .modify, record: id, fields: ["Priority": "9-Whenever"]), "not in its list"),
                (DefectCommand(operation: .modify, record: id, fields: ["Nonsense": "x"]), "does not exist"),
                (DefectCommand(operation: .modify, record: id, fields: ["dbid": "7"]), "read-only"),
                (DefectCommand(operation: .create, fields: ["Headline": "H", "Severity": "9"]), "not in its list"),
                (
                    DefectCommand(operation: .modify, record: "SAMPL99999999", fields: ["Headline": "x"]),
                    "does not exist"
                ),
                (DefectCommand(operation: .modify, record: "../..", fields: ["Headline": "x"]), ""),
                (DefectCommand(operation: .modify, record: "..", fields: ["Headline": "x"]), "'record' must be"),
                (DefectCommand(operation: .delete, record: id, actionName: "Modify"), "does not delete"),
            ]
            for (command, text) in cases {
                let refused = try await world.perform(command)
                #expect(refused.status == .refused, "\(refused)")
                #expect(refused.messages.joined().contains(text) || text.isEmpty, "\(refused.messages)")
            }
            #expect(world.compass.saveCount(id) == 1)
            try world.expectNothingOpen()
        }
    }

    @Test func malformedCommandIsRefusedWithoutACall() async throws {
        try await CommandWorld.run { world in
            let many = Dictionary(uniqueKeysWithValues: (0...200).map { ("f\($0)", "x") })
            let commands = [
                DefectCommand(operation: .create), DefectCommand(operation: .modify, fields: ["Headline": "x"]),
                DefectCommand(operation: .modify, record: "  ", fields: ["Headline": "x"]),
                DefectCommand(operation: .modify, record: "SAMPL00000001"),
                DefectCommand(operation: .changeState, record: "SAMPL00000001", actionName: " "),
                DefectCommand(operation: .delete), DefectCommand(operation: .choices, record: "SAMPL00000001"),
                DefectCommand(operation: .choices, choicesOf: Array(repeating: "x", count: 21)),
                DefectCommand(operation: .create, record: "SAMPL00000001", fields: ["Headline": "x"]),
                DefectCommand(operation: .create, fields: many), DefectCommand(operation: .read),
                DefectCommand(operation: .read, record: " "), DefectCommand(operation: .runQuery),
                DefectCommand(operation: .runQuery, query: "7", fromRow: -1),
                DefectCommand(operation: .runQuery, query: "7", fromRow: 50_000),
                DefectCommand(operation: .runQuery, record: "SAMPL00000001", query: "7"),
                DefectCommand(operation: .queries, record: "SAMPL00000001"),
                DefectCommand(operation: .queries, folder: "../folders"),
                DefectCommand(operation: .runQuery, query: "7/x"),
                DefectCommand(operation: .form, fields: ["Headline": String(repeating: "x", count: 9_000)]),
            ]
            let hostile = [
                "../../workspace", "SAMPL00000001/fields", "SAMPL00000001?operation=Commit", "SAMPL00000001#x",
                "SAMPL00000001\r\nX: y", "*", "%2e%2e", ".", "..", "SAMPL 1", "Ø1", "\u{7F}",
                String(repeating: "S", count: 5_000), String(repeating: "S", count: 65),
            ].flatMap { record in
                [
                    DefectCommand(operation: .modify, record: record, fields: ["Headline": "x"]),
                    DefectCommand(operation: .delete, record: record),
                    DefectCommand(operation: .choices, record: record, choicesOf: ["Severity"]),
                    DefectCommand(operation: .read, record: record), DefectCommand(operation: .form, record: record),
                ]
            }
            for command in commands + hostile {
                let refused = try await world.perform(command)
                #expect(refused.status == .refused && !refused.messages.isEmpty, "\(refused)")
            }
            #expect(world.gate.count == 0)
            // A command that no service can have written is dead-lettered alone.
            let undecodable = UUID()
            try world.acme.put(
                [(undecodable, #"{"operation": "explode", "submitRequested": true}"#)], .defectCommand,
                into: .user("ana@example.com"))
            await #expect(throws: CommandWorld.DeadLetterError.self) {
                try await world.finish(CommandWorld.ObjectReference(email: "ana@example.com", id: undecodable))
            }
        }
    }

    /// A command is ignored before it is submitted and after it is done.
    @Test func submittedCommandIsPerformedOnce() async throws {
        try await CommandWorld.run { world in
            let id = UUID()
            let draft = #"{"operation": "create", "fields": {"Headline": "H", "Severity": "3-Average"}}"#
            try world.acme.put([(id, draft)], .defectCommand, into: .user("ana@example.com"))
            let reference = CommandWorld.ObjectReference(email: "ana@example.com", id: id)
            try await world.finish(reference)
            #expect(world.gate.count == 0)
            let handedIn = try world.handIn(DefectCommand(operation: .create, fields: Self.values))
            for _ in 0..<3 { try await world.finish(handedIn) }
            #expect(world.compass.records("The crane is blocked").count == 1)
            try world.delete(handedIn)
            try await world.finish(handedIn)
            #expect(world.compass.records("The crane is blocked").count == 1)
        }
    }
}
