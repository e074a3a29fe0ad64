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

/// Whatever goes wrong between any two calls of an edit session: no record twice, no session left open, and a status
/// that is true.
@Suite(.ownThreads) struct CrashTests {
    enum Case: CaseIterable {
        case create, modify, modifyOverBase, changeState, delete, deleteOverBase, choices, choicesOfNew

        /// - Parameters:
        ///   - record: A record that is there, with the headline `old`.
        ///   - headline: Nobody else's.
        func command(_ record: String, _ headline: String) -> DefectCommand {
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
            }
        }

        /// How often the record is saved, and how many there are of the headline, when it is done once.
        func expectDone(_ command: DefectCommand, _ record: String, _ headline: String, _ standIn: StandIn) -> Bool {
            let count = standIn.records(headline).count
            let known = standIn.record(record)
            switch self {
            case .create: return count == 1 && standIn.records(headline)[0].id == command.record
            case .modify, .modifyOverBase: return count == 1 && standIn.saveCount(record) == 2
            case .changeState:
                return count == 1 && standIn.saveCount(record) == 2 && known?.fields["State"] == "Opened"
            case .delete, .deleteOverBase: return known == nil
            case .choices:
                return command.choices == ["Component": ["Cranes", "Piers"]] && standIn.saveCount(record) == 1
            case .choicesOfNew: return command.choices?["Severity"] == CompassSchema.severities && count == 0
            }
        }
    }

    /// The process dies after each number of calls, and the next one too.
    @Test(arguments: Case.allCases) func aCrashBetweenAnyTwoCalls(of what: Case) async throws {
        try await CommandWorld.run { world in
            var isSurvived = false
            for first in 0..<12 where !isSurvived {
                isSurvived = true
                for second in 0..<8 {
                    let (callCount, died) = try await crash(what, after: [first, second], &world)
                    if died > 0 { isSurvived = false }
                    if died < 2 || callCount == 0 { break }
                }
            }
            #expect(isSurvived, "all numbers of calls were tried")
        }
    }

    /// - Returns: How many calls were made, and how many processes died.
    private func crash(
        _ what: Case, after calls: [Int], _ world: inout CommandWorld
    ) async throws -> (calls: Int, died: Int) {
        let headline = UUID().uuidString
        let record = try await world.standIn.add("old")
        let place = try world.handIn(what.command(record, headline))
        let before = world.gate.count
        var died = 0
        for count in calls {
            world.gate.die(after: count)
            if try await !world.dies(place) { break }
            died += 1
        }
        world.gate.reset()
        try await world.finish(place)
        let command = try world.command(place)
        #expect(command.status == .done, "\(what), died after \(calls): \(command)")
        #expect(what.expectDone(command, record, headline, world.standIn), "\(what), died after \(calls)")
        try world.expectNothingOpen()
        return (world.gate.count - before, died)
    }

    /// An answer is lost, a call does not get through, or the tracker is away, at each of the calls, and once more at
    /// the next ones.
    @Test(arguments: Case.allCases, Gate.Fault.allCases) func aCallOfWhichNobodyHears(
        of what: Case, fault: Gate.Fault
    ) async throws {
        try await CommandWorld.run { world in
            for first in 1..<8 {
                for second in [0, 1, 2, 3] {
                    let headline = UUID().uuidString
                    let record = try await world.standIn.add("old")
                    let place = try world.handIn(what.command(record, headline))
                    world.gate.fail(first, fault)
                    if second > 0 { world.gate.fail(first + second, fault) }
                    let reasons = try await world.finish(place)
                    world.gate.reset()
                    let command = try world.command(place)
                    #expect(command.status == .done, "\(what), \(fault) at \(first), \(second): \(command), \(reasons)")
                    #expect(
                        what.expectDone(command, record, headline, world.standIn), "\(what), \(fault) at \(first)")
                    try world.expectNothingOpen()
                }
            }
        }
    }

    /// What was found out is kept when no call can be made because of it.
    @Test func anIDIsKeptWhenTheCircuitIsOpen() async throws {
        try await CommandWorld.run { world in
            let place = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(place).call()
            let answer = try await world.call(call)
            let step = try world.step(place, answer, canCall: false)
            guard case .again = step.disposition else {
                Issue.record("\(step)")
                return
            }
            try await world.finish(place)
            #expect(world.standIn.records("N").count == 1)
            try world.expectNothingOpen()
        }
    }

    /// Its person takes a command back while nobody knows what became of it.
    @Test func theSessionOfACommandThatIsGoneIsEnded() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            for count in 0..<5 {
                let place = try world.handIn(
                    DefectCommand(operation: .modify, record: id, fields: ["Headline": "new \(count)"]))
                world.gate.die(after: count)
                _ = try await world.dies(place)
                world.gate.reset()
                try world.delete(place)
                try await world.finish(place)
                try world.expectNothingOpen()
            }
        }
    }

    /// It was tried, nobody knows how it ended, and somebody else has written the record since.
    @Test func whatNobodyCanTellIsUnknown() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let place = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"], base: ["Headline": "old"]))
            world.gate.die(after: 3)
            #expect(try await world.dies(place))
            _ = try await world.standIn.compass("bo").edit(id, before: .never).commit(
                [.init("Headline", "bo's")], before: .never)
            try await world.finish(place)
            let command = try world.command(place)
            #expect(command.status == .unknown)
            #expect(command.messages == ["Headline is 'bo's' by now, and not 'old' any more; wanted was 'new'"])
            #expect(world.standIn.record(id)?.fields["Headline"] == "bo's")
            try world.expectNothingOpen()
        }
    }

    /// The tracker stays away: a command that was not begun is refused in the end, and one that was is unknown.
    @Test func aCommandEndsWhenTheTrackerStaysAway() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let first = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            for call in 1..<200 { world.gate.fail(call, .away) }
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
    /// Works on a key until the process is dead.
    ///
    /// - Returns: Whether it died; else the key is done.
    mutating func dies(_ place: Place) async throws -> Bool {
        var answer: CommandHandler.Answer?
        for _ in 0..<Self.stepsMax {
            let step = try step(place, answer)
            answer = nil
            switch step.disposition {
            case .finished: return false
            case .again: continue
            case .park: try passTime()
            case .call(let call, _):
                answer = try await self.call(call)
                if answer == nil { return true }
            case .dead(let reason): throw Dead(reason: reason)
            }
        }
        Issue.record("it does not end")
        return false
    }
}
