import BackendContract
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier
@testable import KeyedWorker
@testable import Sandbox

/// Polls with people's own logins over real HTTP, with the Compass emulator and a real PostgreSQL.
@Suite(.ownThreads) struct CompassOwnLoginTests {
    private static let people = ["ana": "a", "bo": "b"]

    private static func run(_ body: @Sendable (inout CompassWorld) async throws -> Void) async throws {
        try await CompassWorld.run { world in
            try world.removeAccount()
            for (user, password) in people {
                try OwnLoginFixture.store(user, password: password, of: "\(user)@example.com", in: &world.acme)
            }
            try await body(&world)
        }
    }

    private static func complete(_ world: inout CompassWorld, _ scope: DefectPoll.Scope = .changes) async throws {
        for user in people.keys.sorted() { try await world.complete(scope, of: "\(user)@example.com") }
    }

    @Test func ownLoginsNotifyEachPersonAndDeleteTheirQueries() async throws {
        try await Self.run { world in
            try await world.compass.change([.init(fields: ["Headline": "It fails", "Owner": "ana"])])
            try await Self.complete(&world)
            #expect(try world.notices().isEmpty)
            try await world.compass.change([
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
            #expect(world.compass.queryCount == 0)
            // It is no longer ana's, and is requested by its id.
            try await world.compass.change([
                .init(record: "SAMPL00000001", action: "Modify", fields: ["Owner": "fieldpost", "Submitter": "bo"])
            ])
            try await world.complete(of: "ana@example.com")
            #expect(try world.mirrorCount() == 3)
        }
    }

    @Test func ownLoginPollTakesSixRequestsPlusPages() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            for scope in [DefectPoll.Scope.changes, .comparison] {
                let before = try await world.compass.stats()["requests"] ?? 0
                try await world.complete(scope, of: "ana@example.com")
                let after = try await world.compass.stats()["requests"] ?? 0
                #expect(after - before == 8, "\(scope)")
            }
        }
    }

    @Test func invisibleDefectIsNotNotified() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try await world.compass.change([
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

    @Test func refusedLoginDoesNotBlockOthersAndResumesWhenReplaced() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try OwnLoginFixture.store("ana", password: "wrong", of: "ana@example.com", in: &world.acme)
            try await world.compass.change([
                .init(user: "fieldpost", fields: ["Headline": "One", "Owner": "ana"]),
                .init(user: "fieldpost", fields: ["Headline": "Two", "Owner": "bo"]),
            ])
            try await Self.complete(&world)
            let account = try OwnLoginFixture.account(of: "ana@example.com", in: &world.acme)
            #expect(account?.status == .refused && account?.reason?.isEmpty == false)
            #expect(try world.notices().count == 1)
            try OwnLoginFixture.store("ana", password: "a", of: "ana@example.com", in: &world.acme)
            try await Self.complete(&world)
            #expect(try world.notices().count == 2)
        }
    }

    @Test func changesDuringAnOutageAreNotifiedAfterIt() async throws {
        try await Self.run { world in
            try await Self.complete(&world)
            try await world.compass.behave(.failing)
            try await world.compass.change([.init(fields: ["Headline": "h", "Owner": "ana"])])
            try world.startPoll(of: "ana@example.com")
            guard case .deferred(_, _, .backendUnavailable) = try await world.finishPoll(of: "ana@example.com") else {
                Issue.record("not deferred")
                return
            }
            try await world.compass.behave(.normal)
            let left = try await world.finishPoll(of: "ana@example.com")
            #expect(left == nil)
            #expect(try world.notices().count == 1)
        }
    }
}
