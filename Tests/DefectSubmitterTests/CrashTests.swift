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

/// Faults between any two calls of an edit session cause no duplicate record, no open session and no wrong status.
@Suite(.ownThreads) struct CrashTests {
    enum Case: CaseIterable {
        case create, modify, modifyOverBase, changeState, delete, deleteOverBase, choices, choicesOfNew
        case read, form, formOfNew, queries, runQuery

        /// - Parameters:
        ///   - record: An existing record with the headline `old`.
        ///   - headline: A unique headline.
        ///   - query: A query of all records, the newest first.
        func command(_ record: String, _ headline: String, _ query: String) -> DefectCommand {
            switch self {
            case .create: DefectCommand(operation: .create, fields: ["Headline": headline, "Severity": "3-Average"])
            case .modify: DefectCommand(operation: .modify, record: record, fields: ["Headline": headline])
            case .modifyOverBase:
                DefectCommand(
                    operation: .modify, record: record, fields: ["Headline": headline], base: ["Headline": "old"])
            case .changeState:
                DefectCommand(
                    operation: .changeState, record: record, actionName: "Open",
                    fields: ["Owner": "bo", "Headline": headline], base: ["State": "Submitted"])
            case .delete: DefectCommand(operation: .delete, record: record)
            case .deleteOverBase: DefectCommand(operation: .delete, record: record, base: ["Headline": "old"])
            case .choices:
                DefectCommand(
                    operation: .choices, record: record, fields: ["Project": "Harbour"], choicesOf: ["Component"])
            case .choicesOfNew: DefectCommand(operation: .choices, choicesOf: ["Severity", "Priority"])
            case .read: DefectCommand(operation: .read, record: record)
            case .form: DefectCommand(operation: .form, record: record, actionName: "Open", choicesOf: ["Owner"])
            case .formOfNew: DefectCommand(operation: .form, choicesOf: ["Severity"])
            case .queries: DefectCommand(operation: .queries)
            case .runQuery: DefectCommand(operation: .runQuery, query: query)
            }
        }

        /// Whether the tracker's records are those of a command that was performed once.
        func expectDone(
            _ command: DefectCommand, _ record: String, _ headline: String, _ compass: RunningEmulator<CompassSystem>
        ) -> Bool {
            let count = compass.records(headline).count
            let existing = compass.record(record)
            switch self {
            case .create: return count == 1 && compass.records(headline)[0].id == command.record
            case .modify, .modifyOverBase: return count == 1 && compass.saveCount(record) == 2
            case .changeState:
                return count == 1 && compass.saveCount(record) == 2 && existing?.fields["State"] == "Opened"
            case .delete, .deleteOverBase: return existing == nil
            case .choices:
                return command.choices == ["Component": ["Cranes", "Piers"]] && compass.saveCount(record) == 1
            case .choicesOfNew: return command.choices?["Severity"] == CompassSchema.severities && count == 0
            case .read: return command.detail?.fields?.first { $0.name == "id" }?.value == record
            case .form:
                let owner = command.detail?.fields?.first { $0.name == "Owner" }
                return owner?.requiredness == .mandatory && owner?.choices == ["ana", "bo"]
                    && compass.saveCount(record) == 1
            case .formOfNew:
                let severity = command.detail?.fields?.first { $0.name == "Severity" }
                return severity?.choices == CompassSchema.severities && count == 0
            case .queries: return command.detail?.items?.map(\.name) == ["all"]
            case .runQuery: return command.detail?.rows?.first == [record, "old"]
            }
        }
    }

    /// The process crashes after each number of calls, and the next process does, too.
    @Test(arguments: Case.allCases) func commandSurvivesCrashesBetweenCalls(of operation: Case) async throws {
        try await CommandWorld.run { world in
            let query = try await world.addQuery("all")
            var survived = false
            for first in 0..<12 where !survived {
                survived = true
                for second in 0..<8 {
                    let (callCount, crashed) = try await crash(operation, query, after: [first, second], &world)
                    if crashed > 0 { survived = false }
                    if crashed < 2 || callCount == 0 { break }
                }
            }
            #expect(survived, "all numbers of calls were tried")
        }
    }

    /// - Returns: The number of calls, and of crashed processes.
    private func crash(
        _ operation: Case, _ query: String, after calls: [Int], _ world: inout CommandWorld
    ) async throws -> (calls: Int, crashed: Int) {
        let headline = UUID().uuidString
        let record = try await world.compass.add("old")
        let reference = try world.handIn(operation.command(record, headline, query))
        let before = world.gate.count
        var crashed = 0
        for count in calls {
            world.gate.crash(after: count)
            if try await !world.runUntilCrash(reference) { break }
            crashed += 1
        }
        world.gate.reset()
        try await world.finish(reference)
        let command = try world.command(reference)
        #expect(command.status == .done, "\(operation), crashed after \(calls): \(command)")
        #expect(operation.expectDone(command, record, headline, world.compass), "\(operation), crashed after \(calls)")
        try world.expectNothingOpen()
        return (world.gate.count - before, crashed)
    }

    /// At each call, and again at one of the next ones, a response is lost, a call is lost, or the tracker is
    /// unavailable.
    @Test(arguments: Case.allCases, FaultGate.Fault.allCases) func commandSurvivesFaultyCalls(
        of operation: Case, fault: FaultGate.Fault
    ) async throws {
        try await CommandWorld.run { world in
            let query = try await world.addQuery("all")
            for first in 1..<8 {
                for second in [0, 1, 2, 3] {
                    let headline = UUID().uuidString
                    let record = try await world.compass.add("old")
                    let reference = try world.handIn(operation.command(record, headline, query))
                    world.gate.fail(first, fault)
                    if second > 0 { world.gate.fail(first + second, fault) }
                    let reasons = try await world.finish(reference)
                    world.gate.reset()
                    let command = try world.command(reference)
                    #expect(
                        command.status == .done, "\(operation), \(fault) at \(first), \(second): \(command), \(reasons)"
                    )
                    #expect(
                        operation.expectDone(command, record, headline, world.compass),
                        "\(operation), \(fault) at \(first)")
                    try world.expectNothingOpen()
                }
            }
        }
    }

    /// The id of a new record is kept if no call can be made next.
    @Test func openCircuitKeepsNewRecordID() async throws {
        try await CommandWorld.run { world in
            let reference = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(reference).call()
            let result = try await world.call(call)
            let step = try world.step(reference, result, canCall: false)
            guard case .reprocess = step.disposition else {
                Issue.record("\(step)")
                return
            }
            try await world.finish(reference)
            #expect(world.compass.records("N").count == 1)
            try world.expectNothingOpen()
        }
    }

    /// The person deletes a command while its outcome is unknown.
    @Test func sessionOfDeletedCommandIsReverted() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            for count in 0..<5 {
                let reference = try world.handIn(
                    DefectCommand(operation: .modify, record: id, fields: ["Headline": "new \(count)"]))
                world.gate.crash(after: count)
                _ = try await world.runUntilCrash(reference)
                world.gate.reset()
                try world.delete(reference)
                try await world.finish(reference)
                try world.expectNothingOpen()
            }
        }
    }

    /// The outcome of an attempt is unknown, and another user has changed the record since.
    @Test func concurrentChangeAfterACrashIsUnknown() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let reference = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"], base: ["Headline": "old"]))
            world.gate.crash(after: 3)
            #expect(try await world.runUntilCrash(reference))
            _ = try await world.compass.compass("bo").edit(id, before: .never).commit(
                [.init("Headline", "bo's")], before: .never)
            try await world.finish(reference)
            let command = try world.command(reference)
            #expect(command.status == .unknown)
            #expect(command.messages == ["Headline is now 'bo's', not 'old'; requested: 'new'"])
            #expect(world.compass.record(id)?.fields["Headline"] == "bo's")
            try world.expectNothingOpen()
        }
    }

    /// The tracker stays unavailable: a command without an attempt is refused, one with an attempt is unknown.
    @Test func commandEndsAfterAttemptsMax() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let first = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            for call in 1..<200 { world.gate.fail(call, .unavailable) }
            let reasons = try await world.finish(first)
            #expect(try world.command(first).status == .refused)
            #expect(reasons.count == CommandWorld.rule.attemptsMax - 1)
            world.gate.reset()
            let second = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            for call in 3..<200 { world.gate.fail(call, .lostBefore) }
            try await world.finish(second)
            #expect(try world.command(second).status == .unknown)
            world.gate.reset()
        }
    }
}

extension CommandWorld {
    /// Processes a key until the process crashes.
    ///
    /// - Returns: Whether it crashed; otherwise the key is done.
    mutating func runUntilCrash(_ reference: ObjectReference) async throws -> Bool {
        var result: CommandHandler.CallResult?
        for _ in 0..<Self.stepsMax {
            let step = try step(reference, result)
            result = nil
            switch step.disposition {
            case .finished: return false
            case .reprocess: continue
            case .deferred: try passTime()
            case .call(let call, _):
                result = try await self.call(call)
                if result == nil { return true }
            case .deadLettered(let reason): throw DeadLetterError(reason: reason)
            }
        }
        Issue.record("not finished")
        return false
    }
}
