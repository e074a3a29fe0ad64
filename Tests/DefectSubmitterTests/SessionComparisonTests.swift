import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// What somebody else saves after a record was read, and before its edit begins.
@Suite(.ownThreads) struct SessionComparisonTests {
    /// The fields as Bo saves them meanwhile, and what comes of Ana's command.
    static let cases: [([FieldValue], [String])] = [
        (
            [FieldValue("Severity", "2-Major")],
            ["Severity is '2-Major' by now, and not '3-Average' any more; wanted was '4-Minor'"]
        ),
        ([FieldValue("Headline", "bo's")], ["Headline is 'bo's' by now, and not 'H' any more"]),
        // She did not look at it, or wants the same.
        ([FieldValue("Description", "bo's")], []), ([FieldValue("Severity", "4-Minor")], []),
    ]

    @Test(arguments: cases, [false, true]) func whatIsSavedBeforeTheEditIsCompared(
        values: ([FieldValue], [String]), isUncertain: Bool
    ) async throws {
        try await CommandWorld.run { world in
            let (saved, messages) = values
            let id = try await world.standIn.add("H")
            let bo = world.standIn.compass("bo")
            let tracker = Interrupter(world.standIn.compass("ana"), before: .edit) {
                _ = try? await bo.edit(id, before: .never).commit(saved, before: .never)
            }
            let command = DefectCommand(
                operation: .modify, record: id, fields: ["Severity": "4-Minor", "Priority": "2-Give High Attention"],
                base: ["Headline": "H", "Severity": "3-Average"])
            let answer = await CommandCaller(tracker: tracker, deadline: .never).call(
                .carryOut(command, record: id, isNew: false, isUncertain: isUncertain))
            let fields = world.standIn.record(id)?.fields ?? [:]
            if messages.isEmpty {
                #expect(answer == .done(record: id))
                #expect(fields["Severity"] == "4-Minor" && fields["Priority"] == "2-Give High Attention")
            } else {
                #expect(answer == (isUncertain ? .unclear(messages) : .conflict(messages)))
                #expect(fields["Priority"] == nil, "nothing is written over it")
            }
            for value in saved { #expect(fields[value.name] == value.value) }
            try world.expectNothingOpen()
        }
    }

    /// It is no conflict with anybody, however often it is tried.
    @Test func whatAnActionWritesByItselfIsNoConflict() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("H")
            var tracker = Interrupter(world.standIn.compass("ana"), before: .edit) {}
            tracker.written = ["Owner": "ana", "State": "Opened"]
            let command = DefectCommand(
                operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "bo"],
                base: ["Owner": "", "State": "Submitted"])
            let answer = await CommandCaller(tracker: tracker, deadline: .never).call(
                .carryOut(command, record: id, isNew: false, isUncertain: false))
            #expect(answer == .done(record: id))
            #expect(world.standIn.record(id)?.fields["Owner"] == "bo" && world.standIn.saveCount(id) == 2)
            try world.expectNothingOpen()
        }
    }

    /// A state that the session shows already costs nothing more.
    @Test func theComparisonCostsNoCall() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("H")
            let commands: [(DefectCommand, Int)] = [
                (DefectCommand(operation: .modify, record: id, fields: ["Severity": "4-Minor"]), 3),
                (
                    DefectCommand(
                        operation: .modify, record: id, fields: ["Severity": "2-Major"], base: ["Severity": "4-Minor"]),
                    3
                ),
                (
                    DefectCommand(
                        operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "bo"],
                        base: ["State": "Submitted", "Owner": ""]), 4
                ),
                // It is done already, or in conflict.
                (DefectCommand(operation: .modify, record: id, fields: ["Severity": "2-Major"]), 1),
                (
                    DefectCommand(
                        operation: .modify, record: id, fields: ["Severity": "1-Critical"],
                        base: ["Severity": "4-Minor"]), 1
                ),
            ]
            for (command, count) in commands {
                let before = world.gate.count
                _ = try await world.perform(command)
                #expect(world.gate.count - before == count, "\(command)")
            }
        }
    }
}
