import BackendContract
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker
@testable import Sandbox

/// Rounds with people's own logins over real HTTP, with the stand-in for Compass and a real PostgreSQL.
@Suite(.ownThreads) struct CompassOwnTests {
    private static let people = ["ana": "a", "bo": "b"]

    private static func run(_ body: @Sendable (inout CompassWorld) async throws -> Void) async throws {
        try await CompassWorld.run { world in
            try world.removeAccount()
            for (user, password) in people {
                try OwnLogins.store(user, password: password, of: "\(user)@example.com", in: &world.acme)
            }
            try await body(&world)
        }
    }

    private static func complete(_ world: inout CompassWorld, _ scope: DefectPoll.Scope = .changes) async throws {
        for user in people.keys.sorted() { try await world.complete(scope, of: "\(user)@example.com") }
    }

    @Test func eachIsToldByTheirOwnLoginAndNoQueryIsLeft() async throws {
        try await Self.run { world in
            try await world.standIn.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await Self.complete(&world)
            #expect(try world.notices().isEmpty)
            try await world.standIn.change([
                .init(record: "SAMPL00000001", action: "Modify", fields: ["Severity": "2-Major"]),
                .init(user: "ana", fields: ["Headline": "New", "Owner": "bo"]),
                .init(record: "SAMPL00000002", user: "bo", action: "Modify", fields: ["Severity": "1-Critical"]),
            ])
            for scope in [DefectPoll.Scope.changes, .comparison, .changes] {
                try await Self.complete(&world, scope)
                #expect(
                    try world.notices() == [
                        "/users/ana@example.com: SAMPL00000001 (It fails) has been modified",
                        "/users/bo@example.com: SAMPL00000002 (New) has been assigned to you",
                    ])
                #expect(try world.mirrorCount() == 4)
            }
            #expect(world.standIn.queryCount == 0)
            // It leaves ana's hands, and is asked for by its id.
            try await world.standIn.change([
                .init(record: "SAMPL00000001", action: "Modify", fields: ["Owner": "fieldpost", "Submitter": "bo"])
            ])
            try await world.complete(of: "ana@example.com")
            #expect(try world.mirrorCount() == 3)
        }
    }

    @Test func aRoundTakesSixRequestsBesideItsPages() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            for scope in [DefectPoll.Scope.changes, .comparison] {
                let before = try await world.standIn.stats()["requests"] ?? 0
                try await world.complete(scope, of: "ana@example.com")
                let after = try await world.standIn.stats()["requests"] ?? 0
                #expect(after - before == 8, "\(scope)")
            }
        }
    }

    @Test func whatALoginDoesNotSeeIsNotTold() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try await world.standIn.change([
                .init(fields: ["Headline": "Open", "Owner": "ana"]),
                .init(fields: ["Headline": "Hidden", "Owner": "ana"], readers: ["bo"]),
            ])
            try await Self.complete(&world)
            try await Self.complete(&world, .comparison)
            #expect(
                try world.notices() == ["/users/ana@example.com: SAMPL00000001 (Open) has been assigned to you"])
            #expect(try world.mirrorCount() == 3, "bo reported both")
        }
    }

    @Test func aRefusedLoginHoldsUpNobodyAndOneThatIsStoredAnewGoesOn() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try OwnLogins.store("ana", password: "wrong", of: "ana@example.com", in: &world.acme)
            try await world.standIn.change([
                .init(user: "fieldpost", fields: ["Headline": "One", "Owner": "ana"]),
                .init(user: "fieldpost", fields: ["Headline": "Two", "Owner": "bo"]),
            ])
            try await Self.complete(&world)
            let account = try OwnLogins.account(of: "ana@example.com", in: &world.acme)
            #expect(account?.status == .refused && account?.reason?.isEmpty == false)
            #expect(try world.notices().count == 1)
            try OwnLogins.store("ana", password: "a", of: "ana@example.com", in: &world.acme)
            try await Self.complete(&world)
            #expect(try world.notices().count == 2)
        }
    }

    @Test func whatHappenedWhileCompassWasAwayIsToldAfter() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try await world.standIn.behave(.failing)
            try await world.standIn.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try world.begin(of: "ana@example.com")
            guard case .park(_, _, .backendAway) = try await world.finish(of: "ana@example.com") else {
                Issue.record("it does not wait")
                return
            }
            try await world.standIn.behave(.normal)
            let left = try await world.finish(of: "ana@example.com")
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }
}
