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
    @Test func storedLoginIsChecked() async throws {
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
            // A checked login is not checked again.
            let count = world.gate.count
            try await world.finish(bad)
            #expect(world.gate.count == count)
            // A good login removes the reason.
            try await world.finish(try world.storeLogin("ana@example.com", "ana", "secret-of-ana"))
            #expect(try world.account("ana@example.com")?.reason == nil)
        }
    }

    /// A rejected login is not retried: Compass may lock the account.
    @Test func commandsAreRefusedWhileLoginIsRefused() async throws {
        try await CommandWorld.run { world in
            try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            let command = DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"])
            let first = try await world.perform(command)
            #expect(first.status == .refused && first.messages.joined().contains("rejects your login"))
            #expect(try world.account("ana@example.com")?.status == .refused)
            let count = world.gate.count
            #expect(try await world.perform(command).status == .refused)
            #expect(world.gate.count == count, "no call is made")
            #expect(try await world.perform(command, as: "bo@example.com").status == .done, "others are not affected")
            try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            #expect(try await world.perform(command).status == .done)
            try world.expectNothingOpen()
        }
    }

    /// All waiting commands get the result of one rejection, whether they are called before it is written or after.
    @Test(arguments: ["ana", nil]) func refusedLoginIsTriedOnce(user: String?) async throws {
        try await CommandWorld.run { world in
            let check = try world.storeLogin("ana@example.com", user, "wrong-secret")
            var references: [CommandWorld.ObjectReference] = []
            for number in 0..<12 {
                references.append(
                    try world.handIn(
                        DefectCommand(operation: .modify, record: "SAMPL0000000\(number)", fields: ["Headline": "N"])))
            }
            let before = try await world.compass.stats()["requests"] ?? 0
            var results: [CommandHandler.CallResult?] = []
            // Two waves of calls are made before any result is written.
            let calls = try world.decide([check] + references).map { try $0.call() }
            for call in calls { results.append(try await world.call(call)) }
            #expect(try await world.compass.stats()["requests"] == before + 1)
            _ = try world.decide([check] + references, results)
            #expect(try world.account("ana@example.com")?.status == .refused)
            for reference in references { #expect(try world.command(reference).status == .refused) }
            // Another login is tried.
            try await world.finish(try world.storeLogin("ana@example.com", "ana", "secret-of-ana"))
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }

    /// A proxy that requires a login does not refuse people's logins: their commands wait until it is removed.
    @Test(arguments: [302, 403, 407]) func proxyErrorRefusesNoLogin(status: Int) async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            let reference = try world.handIn(DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            try await world.compass.switches("{\"proxyStatus\": \(status)}")
            for reference in [check, reference] {
                let call = try world.step(reference).call()
                let result = try await world.call(call)
                let step = try world.step(reference, result)
                guard case .deferred(let reason, _, .unavailable(retryAfter: nil)) = step.disposition else {
                    Issue.record("\(step)")
                    return
                }
                #expect(reason.contains("HTTP \(status) of a proxy or login page, not of HCL Compass"))
            }
            #expect(try world.account("ana@example.com")?.status == .unchecked)
            try await world.compass.switches(#"{"proxyStatus": 0}"#)
            try await world.finish(check)
            try await world.finish(reference)
            #expect(try world.account("ana@example.com")?.status == .good)
            #expect(try world.command(reference).status == .done)
        }
    }

    /// A result of a call with another login does not apply to the stored login.
    @Test func resultOfFormerLoginIsIgnored() async throws {
        try await CommandWorld.run { world in
            try world.storeLogin("ana@example.com", "ana", "wrong-secret")
            let reference = try world.handIn(
                DefectCommand(operation: .create, fields: ["Headline": "N", "Severity": "3-Average"]))
            let call = try world.step(reference).call()
            let result = try await world.call(call)
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            _ = try world.decide([reference], [result])
            #expect(try world.account("ana@example.com")?.status == .unchecked)
            try await world.finish(check)
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }

    /// The password changes during an attempt: the status is not `refused`, because the command may have been
    /// performed.
    @Test func loginRefusedDuringRecoveryLeavesOutcomeUnknown() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let reference = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            world.gate.crash(after: 3)
            #expect(try await world.runUntilCrash(reference))
            try await world.compass.switches(#"{"refusesLogins": true}"#)
            try await world.finish(reference)
            #expect(try world.command(reference).status == .unknown)
            #expect(try world.account("ana@example.com")?.status == .refused)
        }
    }

    @Test func commandWithoutLoginOrTrackerIsRefused() async throws {
        try await CommandWorld.run { world in
            let command = DefectCommand(operation: .delete, record: "SAMPL00000001")
            let unlisted = try await world.perform(command, as: "eva@example.com")
            #expect(unlisted.status == .refused && unlisted.messages == ["You have no stored login for HCL Compass"])
            try world.acme.connection.run(DefectTracker.remove(from: world.acme.id))
            let untracked = try await world.perform(command)
            #expect(untracked.messages == ["Your organisation has no HCL Compass configured"])
            let check = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            try await world.finish(check)
            #expect(try world.account("ana@example.com")?.status == .refused)
            #expect(world.gate.count == 0)
        }
    }

    /// An attempt at an earlier tracker of the environment cannot be looked up.
    @Test func trackerChangeLeavesOutcomeUnknown() async throws {
        try await CommandWorld.run { world in
            let id = try await world.compass.add("old")
            let reference = try world.handIn(
                DefectCommand(operation: .modify, record: id, fields: ["Headline": "new"]))
            world.gate.crash(after: 2)
            #expect(try await world.runUntilCrash(reference))
            var tracker = try #require(try DefectTracker.load(world.acme.id, on: &world.acme.connection))
            tracker.database = "OTHER"
            try world.acme.connection.run(tracker.save())
            try await world.finish(reference)
            #expect(try world.command(reference).status == .unknown)
            let rows = try world.acme.connection.run("SELECT count(*) FROM defect.attempt")[0].decode(Int64.self)
            #expect(rows == 0)
        }
    }

    /// A secret without its key, or copied from another row, cannot be decrypted: no call is made.
    @Test func secretOfAnotherRowIsDeferred() async throws {
        try await CommandWorld.run { world in
            let reference = try world.handIn(DefectCommand(operation: .delete, record: "SAMPL00000001"))
            try world.acme.connection.run(
                """
                UPDATE backend.defect_account a SET secret = b.secret FROM backend.defect_account b
                WHERE a.realm_id <> b.realm_id
                """)
            let step = try world.step(reference)
            guard case .deferred(let reason, _, .planned) = step.disposition else {
                Issue.record("\(step)")
                return
            }
            #expect(reason.contains("belongs to another row"))
            #expect(try world.command(reference).status == .waiting && world.gate.count == 0)
            // There is no attempt: the record is free for others.
            #expect(try world.acme.connection.run("SELECT FROM defect.attempt").count == 0)
        }
    }

    /// The check fails while the tracker responds to others: its person sees the reason, and the check is retried until
    /// it succeeds.
    @Test func loginCheckIsRetriedBeyondAttemptsMax() async throws {
        try await CommandWorld.run { world in
            let reference = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            for _ in 0..<2 {
                world.gate.fail(1, .unavailable)
                let call = try world.step(reference).call()
                let result = try await world.call(call)
                let step = try world.step(reference, result, attemptCount: CommandWorld.rule.attemptsMax - 1)
                guard case .deferred(_, CommandWorld.rule.retryMax, .planned) = step.disposition else {
                    Issue.record("\(step)")
                    return
                }
                let account = try #require(try world.account("ana@example.com"))
                #expect(
                    account.status == .unchecked
                        && account.reason == "HCL Compass could not check the login: unavailable")
                world.gate.reset()
            }
            try await world.finish(reference)
            let account = try #require(try world.account("ana@example.com"))
            #expect(account.status == .good && account.reason == nil)
        }
    }

    /// Compass is unavailable: the login is checked when it recovers.
    @Test func loginCheckWaitsForUnavailableTracker() async throws {
        try await CommandWorld.run { world in
            let reference = try world.storeLogin("ana@example.com", "ana", "secret-of-ana")
            world.gate.fail(1, .unavailable)
            world.gate.fail(2, .lostAfter)
            #expect(try await world.finish(reference) == ["unavailable", "lost after"])
            #expect(try world.account("ana@example.com")?.status == .good)
        }
    }
}
