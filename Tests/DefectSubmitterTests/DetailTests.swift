import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// Records, forms and queries that people read: the scenes of the vendor's sample app.
@Suite(.ownThreads) struct DetailTests {
    @Test func recordHasAllFieldsAndTheActionsOfItsState() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H", [FieldValue("Description", "a\r\nb")])
            let read = try await world.perform(DefectCommand(operation: .read, record: id))
            #expect(read.status == .done && read.messages.isEmpty && read.record == id)
            let detail = try #require(read.detail)
            #expect(detail.readAt != nil && detail.fields?.map(\.name) == CompassSchema.fields.map(\.name))
            let description = DefectDetail.Field(
                name: "Description", type: "MULTILINE_STRING", requiredness: .optional, value: "a\r\nb")
            #expect(detail.field("Description") == description)
            #expect(detail.field("Headline")?.requiredness == .mandatory)
            #expect(detail.field("id")?.requiredness == .readOnly && detail.field("id")?.value == id)
            #expect(
                detail.actions == [
                    .init(operation: .modify, name: "Modify"), .init(operation: .delete, name: "Delete"),
                    .init(operation: .changeState, name: "Assign", state: "Assigned"),
                    .init(operation: .changeState, name: "Open", state: "Opened"),
                    .init(operation: .changeState, name: "Postpone", state: "Postponed"),
                ])
            #expect(world.gate.count == 2)
            #expect(try await world.compass.stats()["edits"] ?? 0 == 0, "no session is opened")
            let open = DefectCommand(
                operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "bo"])
            #expect(try await world.perform(open).status == .done)
            let later = try await world.perform(DefectCommand(operation: .read, record: id)).detail
            let changes = later?.actions?.filter { $0.operation == .changeState }.map(\.name)
            #expect(changes == ["Assign", "Resolve", "Postpone"] && later?.field("State")?.value == "Opened")
            try world.expectNothingOpen()
        }
    }

    /// Before editing, and for each action that can be chosen.
    @Test func formStatesRequirednessAndChoicesOfItsAction() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let edit = try await Self.form(DefectCommand(operation: .form, record: id), &world)
            #expect(edit.mandatory == ["Headline", "Severity"] && edit.field("State")?.requiredness == .readOnly)
            #expect(edit.field("Severity")?.choices == CompassSchema.severities)
            #expect(edit.field("Severity")?.value == "3-Average" && edit.field("Owner")?.choices == ["ana", "bo"])
            #expect(edit.field("Headline")?.choices == [] && edit.field("id")?.choices == nil)
            let cases = [
                ("Assign", ["Headline", "Severity", "Priority", "Owner"]), ("Open", ["Headline", "Severity", "Owner"]),
                ("Postpone", ["Headline", "Severity"]),
            ]
            for (action, names) in cases {
                let form = try await Self.form(
                    DefectCommand(operation: .form, record: id, actionName: action, choicesOf: ["Priority"]), &world)
                #expect(form.mandatory == names, "\(action)")
                #expect(form.field("Priority")?.choices == CompassSchema.priorities)
                #expect(form.field("Severity")?.choices == nil, "it was not requested")
            }
            let dependent = try await Self.form(
                DefectCommand(
                    operation: .form, record: id, fields: ["Severity": "1-Critical", "Project": "Harbour"]), &world)
            #expect(dependent.mandatory == ["Headline", "Severity", "Priority"])
            #expect(dependent.field("Component")?.choices == ["Cranes", "Piers"])
            let wrong = try await world.perform(
                DefectCommand(operation: .form, record: id, actionName: "Validate"))
            #expect(wrong.status == .refused && wrong.messages.joined().contains("not allowed in the state"))
            #expect(world.compass.saveCount(id) == 1 && world.compass.record(id)?.fields["Project"] == nil)
            try world.expectNothingOpen()
        }
    }

    @Test func formOfNewRecordSavesNothing() async throws {
        try await CommandWorld.run { world in
            let form = try await Self.form(DefectCommand(operation: .form), &world)
            #expect(form.mandatory == ["Headline", "Severity"] && form.field("Headline")?.value == "")
            #expect(form.field("Severity")?.choices == CompassSchema.severities)
            #expect(form.field("Submitter")?.requiredness == .readOnly)
            try world.expectNothingOpen()
            #expect(world.compass.sessions.new == 0)
            #expect(world.compass.system.withState { $0.recordCount } == 0)
        }
    }

    private static func form(_ command: DefectCommand, _ world: inout CommandWorld) async throws -> DefectDetail {
        let done = try await world.perform(command)
        #expect(done.status == .done && done.messages.isEmpty, "\(done)")
        return try #require(done.detail)
    }

    /// Another device, or another person, changed the record since it was read: the second command gets the current
    /// value, and a read has all of them.
    @Test(arguments: ["ana@example.com", "bo@example.com"])
    func secondDeviceGetsConflictAndReadsTheRecordAgain(second: String) async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let read = DefectCommand(operation: .read, record: id)
            let seen = try #require(try await world.perform(read).detail)
            #expect(try await world.perform(read, as: second).detail?.fields == seen.fields)
            func modify(_ severity: String) -> DefectCommand {
                DefectCommand(
                    operation: .modify, record: id, fields: ["Severity": severity],
                    base: ["Severity": seen.field("Severity")?.value ?? ""])
            }
            #expect(try await world.perform(modify("2-Major")).status == .done)
            let other = try await world.perform(modify("4-Minor"), as: second)
            #expect(other.status == .conflict)
            #expect(other.messages == ["Severity is now '2-Major', not '3-Average'; requested: '4-Minor'"])
            #expect(other.detail?.field("Severity")?.value == "2-Major" && other.detail?.actions?.isEmpty == false)
            let again = try await world.perform(read, as: second)
            #expect(again.detail?.field("Severity")?.value == "2-Major")
            try world.expectNothingOpen()
        }
    }

    /// The record cannot be read after a conflict, or leaves no space: the conflict is reported without it.
    @Test func conflictIsReportedWithoutItsRecord() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            var command = DefectCommand(
                operation: .modify, record: id, fields: ["Headline": "new"], base: ["Headline": "old"])
            world.gate.fail(2, .unavailable)
            let unread = try await world.perform(command)
            #expect(unread.status == .conflict && unread.detail == nil && unread.messages.count == 1)
            world.gate.reset()
            command.fields["Description"] = String(repeating: "x", count: ComparisonRule.valueBytesMax)
            let large = try await world.perform(command)
            #expect(large.status == .conflict && large.detail == nil)
            command.fields["Description"] = "x"
            #expect(try await world.perform(command).detail?.field("Headline")?.value == "H")
            try world.expectNothingOpen()
        }
    }

    @Test func deletedRecordIsReported() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            let bo = world.compass.compass("bo")
            // Between the read of the record and the start of its session.
            let tracker = InterruptedTracker(world.compass.compass("ana"), before: .edit) {
                _ = try? await bo.delete(id, before: .never)
            }
            let form = DefectCommand(operation: .form, record: id, actionName: "Open")
            let result = await CommandCaller(tracker: tracker, deadline: .never).call(
                .perform(form, record: id, isNew: false, isUncertain: false))
            guard case .refused(let messages) = result, messages.joined().contains("not found") else {
                Issue.record("\(result)")
                return
            }
            for command in [form, DefectCommand(operation: .read, record: id)] {
                let refused = try await world.perform(command)
                #expect(refused.status == .refused && refused.detail == nil)
                #expect(refused.messages == ["Record \(id) does not exist"])
            }
            try world.expectNothingOpen()
        }
    }

    /// A value that is not a text is reported, and blocks neither reading nor editing of the others.
    @Test func unreadableValueIsReported() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H", [FieldValue("Keywords", "k")])
            try await world.compass.switches(#"{"unreadableField": "Severity"}"#)
            for operation in [DefectCommand.Operation.read, .form] {
                let read = try await world.perform(DefectCommand(operation: operation, record: id))
                #expect(read.status == .done && read.messages == ["values that cannot be read: 1"])
                let severity = try #require(read.detail?.field("Severity"))
                #expect(severity.value == nil && severity.requiredness == .mandatory)
                #expect(read.detail?.field("Keywords")?.value == "k")
            }
            let edited = try await world.perform(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"], base: ["Headline": "H"]))
            #expect(edited.status == .done && world.compass.record(id)?.fields["Headline"] == "new")
            #expect(world.compass.record(id)?.fields["Severity"] == "3-Average")
            // It differs from an empty value, so clearing it is not done already.
            try await world.compass.switches(#"{"unreadableField": "Keywords"}"#)
            let clear = DefectCommand(operation: .modify, record: id, fields: ["Keywords": ""])
            #expect(try await world.perform(clear).status == .done)
            let keywords = world.compass.record(id)?.fields["Keywords"] ?? ""
            #expect(keywords.isEmpty)
            try world.expectNothingOpen()
        }
    }

    static let reads = [
        DefectCommand(operation: .read, record: "SAMPL00000001"), DefectCommand(operation: .form),
        DefectCommand(operation: .form, record: "SAMPL00000001"), DefectCommand(operation: .queries),
        DefectCommand(operation: .runQuery, query: "33554444"),
    ]

    /// Commands wait for an unavailable tracker, and are performed when it recovers.
    @Test(arguments: reads) func readWaitsForUnavailableTracker(command: DefectCommand) async throws {
        try await CommandWorld.run { world in
            _ = try await world.compass.add("H")
            let query = try await world.addQuery("all")
            #expect(query == "33554444", "the query of the commands")
            try await world.compass.switches(#"{"rate503": 1}"#)
            let reference = try world.handIn(command)
            let call = try world.step(reference).call()
            let result = try await world.call(call)
            let step = try world.step(reference, result)
            guard case .deferred(_, _, .unavailable(retryAfter: nil)) = step.disposition else {
                Issue.record("\(step)")
                return
            }
            let waiting = try world.command(reference)
            #expect(waiting.status == .waiting)
            try await world.compass.switches(#"{"rate503": 0}"#)
            try await world.finish(reference)
            let done = try world.command(reference)
            #expect(done.status == .done)
            try world.expectNothingOpen()
            // It stays unavailable.
            let last = try world.handIn(command)
            for call in 1..<200 { world.gate.fail(call, .unavailable) }
            try await world.finish(last)
            let refused = try world.command(last)
            #expect(refused.status == .refused && refused.messages == ["The command failed: unavailable"])
            try world.expectNothingOpen()
        }
    }

    @Test(arguments: reads) func readIsRefusedWithRefusedLogin(command: DefectCommand) async throws {
        try await CommandWorld.run { world in
            try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            let first = try await world.perform(command)
            #expect(first.status == .refused && first.messages.joined().contains("rejects your login"))
            #expect(try world.account("ana@example.com")?.status == .refused)
            let count = world.gate.count
            let second = try await world.perform(command)
            #expect(second.status == .refused)
            #expect(world.gate.count == count, "no call is made")
            try world.expectNothingOpen()
        }
    }
}

extension DefectDetail {
    func field(_ name: String) -> Field? { fields?.first { $0.name == name } }

    var mandatory: [String] { (fields ?? []).filter { $0.requiredness == .mandatory }.map(\.name) }
}
