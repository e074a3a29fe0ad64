import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// People's own logins.
@Suite(.ownThreads) struct LoginTests {
    @Test func aLoginIsCheckedWhenItIsStored() async throws {
        try await CommandWorld.run { world in
            let good = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            try await world.finish(good)
            #expect(try world.account("ana@example.com")?.status == .good)
            let token = try world.storeLogin("ana@example.com", nil, "dG9rZW4tb2YtYW5h")
            try await world.finish(token)
            #expect(try world.account("ana@example.com")?.status == .good)
            let bad = try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            try await world.finish(bad)
            let account = try #require(try world.account("ana@example.com"))
            #expect(account.status == .refused && account.reason?.isEmpty == false && account.user == "ana")
            #expect(account.reason?.contains("wrong-secret") == false)
            // Once it is known, it is not tried again.
            let count = world.gate.count
            try await world.finish(bad)
            #expect(world.gate.count == count)
            // And a good one after it takes the reason away.
            try await world.finish(try world.storeLogin("ana@example.com", "ana", "secret-of-ana"))
            #expect(try world.account("ana@example.com")?.reason == nil)
        }
    }

    /// A login is not tried again and again: Compass may lock the account.
    @Test func commandsAreRefusedWhileTheLoginIs() async throws {
        try await CommandWorld.run { world in
            try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            let command = DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"])
            let first = try await world.perform(command)
            #expect(first.status == .refused && first.messages.joined().contains("does not accept your login"))
            #expect(try world.account("ana@example.com")?.status == .refused)
            let count = world.gate.count
            #expect(try await world.perform(command).status == .refused)
            #expect(world.gate.count == count, "nobody is called")
            #expect(try await world.perform(command, as: "bo@example.com").status == .done, "others go on")
            try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            #expect(try await world.perform(command).status == .done)
            try world.expectNothingOpen()
        }
    }

    /// All that wait hear of one refusal, whether they were called before it is written down or after.
    @Test(arguments: ["ana", nil]) func aRefusedLoginIsTriedOnce(user: String?) async throws {
        try await CommandWorld.run { world in
            let check = try world.storeLogin("ana@example.com", user, "wrong-secret")
            var places: [CommandWorld.Place] = []
            for number in 0..<12 {
                places.append(
                    try world.handIn(
                        DefectCommand(operation: .modify, record: "SAMPL0000000\(number)", fields: ["Headline": "N"])))
            }
            let before = try await world.standIn.stats()["requests"] ?? 0
            var answers: [CommandHandler.Answer?] = []
            // Wave after wave is called before any answer is written.
            let calls = try world.decide([check] + places).map { try $0.call() }
            for call in calls { answers.append(try await world.call(call)) }
            #expect(try await world.standIn.stats()["requests"] == before + 1)
            _ = try world.decide([check] + places, answers)
            #expect(try world.account("ana@example.com")?.status == .refused)
            for place in places { #expect(try world.command(place).status == .refused) }
            // Another one is another try.
            try await world.finish(try world.storeLogin("ana@example.com", "ana", "secret-of-ana"))
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }

    /// A proxy that wants a login of its own refuses nobody's: what was handed in waits until it is gone.
    @Test(arguments: [302, 403, 407]) func aProxyRefusesNobody(status: Int) async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            let place = try world.handIn(DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            try await world.standIn.switches("{\"proxyStatus\": \(status)}")
            for place in [check, place] {
                let call = try world.step(place).call()
                let answer = try await world.call(call)
                let step = try world.step(place, answer)
                guard case .park(let reason, _, .away(askingFor: nil)) = step.disposition else {
                    Issue.record("\(step)")
                    return
                }
                #expect(reason.contains("HTTP \(status) of something before HCL Compass"))
            }
            #expect(try world.account("ana@example.com")?.status == .unchecked)
            try await world.standIn.switches(#"{"proxyStatus": 0}"#)
            try await world.finish(check)
            try await world.finish(place)
            #expect(try world.account("ana@example.com")?.status == .good)
            #expect(try world.command(place).status == .done)
        }
    }

    /// The answer of a call that was made with another login says nothing of the one that is stored by then.
    @Test func anotherLoginIsNotJudgedByTheFormerOnesAnswer() async throws {
        try await CommandWorld.run { world in
            try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            let place = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(place).call()
            let answer = try await world.call(call)
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            _ = try world.decide([place], [answer])
            #expect(try world.account("ana@example.com")?.status == .unchecked)
            try await world.finish(check)
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }

    /// The password is changed in the middle: what may have been done is not said to be refused.
    @Test func aLoginThatIsRefusedInTheMiddleLeavesItUnknown() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let place = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            world.gate.die(after: 3)
            #expect(try await world.dies(place))
            try await world.standIn.switches(#"{"refusesLogins": true}"#)
            try await world.finish(place)
            #expect(try world.command(place).status == .unknown)
            #expect(try world.account("ana@example.com")?.status == .refused)
        }
    }

    @Test func withoutALoginOrATrackerNothingIsTried() async throws {
        try await CommandWorld.run { world in
            let command = DefectCommand(operation: .delete, record: "SAMPL00000001")
            let nobodys = try await world.perform(command, as: "eva@example.com")
            #expect(nobodys.status == .refused && nobodys.messages == ["Your own login of HCL Compass is not stored"])
            try world.acme.connection.run(DefectTracker.remove(from: world.acme.id))
            let nowhere = try await world.perform(command)
            #expect(nowhere.messages == ["Your organisation has no HCL Compass"])
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            try await world.finish(check)
            #expect(try world.account("ana@example.com")?.status == .refused)
            #expect(world.gate.count == 0)
        }
    }

    /// What was tried at a tracker that the environment has no more cannot be looked up.
    @Test func anotherTrackerKnowsNothingOfIt() async throws {
        try await CommandWorld.run { world in
            let id = try await world.standIn.add("old")
            let place = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            world.gate.die(after: 2)
            #expect(try await world.dies(place))
            var tracker = try #require(try DefectTracker.load(world.acme.id, on: &world.acme.connection))
            tracker.database = "OTHER"
            try world.acme.connection.run(tracker.save())
            try await world.finish(place)
            #expect(try world.command(place).status == .unknown)
            let rows = try world.acme.connection.run("SELECT count(*) FROM defect.attempt")[0].decode(Int64.self)
            #expect(rows == 0)
        }
    }

    /// A key that is missing, or a secret that was copied from another row, does not open: nobody is called.
    @Test func aSecretOfAnotherPlaceDoesNotOpen() async throws {
        try await CommandWorld.run { world in
            let place = try world.handIn(DefectCommand(operation: .delete, record: "SAMPL00000001"))
            try world.acme.connection.run(
                """
                UPDATE backend.defect_account a SET secret = b.secret FROM backend.defect_account b
                WHERE a.realm_id <> b.realm_id
                """)
            let step = try world.step(place)
            guard case .park(let reason, _, .planned) = step.disposition else {
                Issue.record("\(step)")
                return
            }
            #expect(reason.contains("belongs to another place"))
            #expect(try world.command(place).status == .waiting && world.gate.count == 0)
            // Nothing was begun: the record is free for others.
            #expect(try world.acme.connection.run("SELECT FROM defect.attempt").count == 0)
        }
    }

    /// Others are answered, and this one never is: its person is told, and it is tried until something is known.
    @Test func aCheckIsNeverGivenUp() async throws {
        try await CommandWorld.run { world in
            let place = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            for _ in 0..<2 {
                world.gate.fail(1, .away)
                let call = try world.step(place).call()
                let answer = try await world.call(call)
                let step = try world.step(place, answer, attemptCount: CommandWorld.rule.attemptsMax - 1)
                guard case .park(_, CommandWorld.rule.retryMax, .planned) = step.disposition else {
                    Issue.record("\(step)")
                    return
                }
                let account = try #require(try world.account("ana@example.com"))
                #expect(account.status == .unchecked && account.reason == "HCL Compass could not be asked: away")
                world.gate.reset()
            }
            try await world.finish(place)
            let account = try #require(try world.account("ana@example.com"))
            #expect(account.status == .good && account.reason == nil)
        }
    }

    /// Compass is away: the login waits, and is checked when it is back.
    @Test func aCheckWaitsForATrackerThatIsAway() async throws {
        try await CommandWorld.run { world in
            let place = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            world.gate.fail(1, .away)
            world.gate.fail(2, .lostAfter)
            #expect(try await world.finish(place) == ["away", "lost after"])
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }
}
