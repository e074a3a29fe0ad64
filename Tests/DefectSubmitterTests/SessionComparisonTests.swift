import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// Changes of another user between the read of a record and the start of its edit session.
@Suite(.ownThreads) struct SessionComparisonTests {
    /// Fields that Bo saves meanwhile, and the conflicts of Ana's command.
    static let cases: [([FieldValue], [String])] = [
        (
            [FieldValue("Severity", "2-Major")],
            ["Severity is now '2-Major', not '3-Average'; requested: '4-Minor'"]
        ),
        ([FieldValue("Headline", "bo's")], ["Headline is now 'bo's', not 'H'"]),
        // Her command has no base for it, or the same value.
        ([FieldValue("Description", "bo's")], []), ([FieldValue("Severity", "4-Minor")], []),
    ]

    @Test(arguments: cases, [false, true]) func changesBeforeTheEditAreCompared(
        values: ([FieldValue], [String]), isUncertain: Bool
    ) async throws {
        try await CommandWorld.run { world in
            let (saved, messages) = values
            let id = try await world.compass.add("H")
            let bo = world.compass.compass("bo")
            let tracker = InterruptedTracker(world.compass.compass("ana"), before: .edit) {
                _ = try? await bo.edit(id, before: .never).commit(saved, before: .never)
            }
            let command = DefectCommand(
                operation: .modify, record: id, fields: ["Severity": "4-Minor", "Priority": "2-Give High Attention"],
                base: ["Headline": "H", "Severity": "3-Average"])
            let result = await CommandCaller(tracker: tracker, deadline: .never).call(
                .perform(command, record: id, isNew: false, isUncertain: isUncertain))
            let fields = world.compass.record(id)?.fields ?? [:]
            if messages.isEmpty {
                #expect(result == .done(record: id))
                #expect(fields["Severity"] == "4-Minor" && fields["Priority"] == "2-Give High Attention")
            } else {
                #expect(result.withoutDetail == (isUncertain ? .ambiguous(messages) : .conflict(messages)))
                #expect(fields["Priority"] == nil, "it is not overwritten")
            }
            for value in saved { #expect(fields[value.name] == value.value) }
            try world.expectNothingOpen()
        }
    }

    /// Values that an action writes itself are no conflict, at any attempt.
    @Test func valuesWrittenByAnActionAreNoConflict() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
            var tracker = InterruptedTracker(world.compass.compass("ana"), before: .edit) {}
            tracker.written = ["Owner": "ana", "State": "Opened"]
            let command = DefectCommand(
                operation: .changeState, record: id, actionName: "Open", fields: ["Owner": "bo"],
                base: ["Owner": "", "State": "Submitted"])
            let result = await CommandCaller(tracker: tracker, deadline: .never).call(
                .perform(command, record: id, isNew: false, isUncertain: false))
            #expect(result == .done(record: id))
            #expect(world.compass.record(id)?.fields["Owner"] == "bo" && world.compass.saveCount(id) == 2)
            try world.expectNothingOpen()
        }
    }

    /// A state that the session already shows takes no extra call.
    @Test func comparisonTakesNoExtraCall() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("H")
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
                // Already done, or in conflict, after which the record is read for display.
                (DefectCommand(operation: .modify, record: id, fields: ["Severity": "2-Major"]), 1),
                (
                    DefectCommand(
                        operation: .modify, record: id, fields: ["Severity": "1-Critical"],
                        base: ["Severity": "4-Minor"]), 3
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
