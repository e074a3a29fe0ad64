import BackendProtocol
import Compass
import HTTPClient
import TestSupport
import Testing

@testable import Sandbox

/// Logins, errors and secrets.
@Suite(.ownThreads) struct CompassClientTests {
    typealias Fixture = CompassFixture

    @Test func concurrentCallsShareLogin() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            try await fixture.switches(#"{"latencyMs": 20}"#)
            try await withThrowingTaskGroup { group in
                for _ in 0..<32 { group.addTask { _ = try await compass.database() } }
                try await group.waitForAll()
            }
            #expect(try await fixture.stats()["logins"] == 1)
            // All are rejected together, and log in once together.
            try await fixture.post("/sandbox/tokens/end", "{}")
            try await withThrowingTaskGroup { group in
                for _ in 0..<32 { group.addTask { _ = try await compass.database() } }
                try await group.waitForAll()
            }
            #expect(try await fixture.stats()["logins"] == 2)
        }
    }

    @Test func expiredTokenIsReplacedOnceOnly() async throws {
        try await Fixture.run { fixture in
            try await fixture.switches(#"{"tokenSecondsMax": 60}"#)
            try await fixture.post("/sandbox/clock", #"{"now": "2026-11-23T13:00:00Z"}"#)
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            try await fixture.post("/sandbox/clock", #"{"advanceSeconds": 61}"#)
            let session = try await compass.edit(id, before: .never)
            #expect(try await fixture.stats()["logins"] == 2)
            #expect(try await fixture.stats()["edits"] == 1, "what was refused was not done")
            try await session.revert()
            // A token that is never valid: one new login, and the rejection is final.
            try await fixture.switches(#"{"tokenSecondsMax": 0}"#)
            try await fixture.post("/sandbox/tokens/end", "{}")
            let error = await #expect(throws: BackendError.self) { try await compass.record(id) }
            guard case .unauthorized = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try await fixture.stats()["logins"] == 3)
        }
    }

    @Test func cancelledCallDoesNotCancelSharedLogin() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            try await fixture.switches(#"{"latencyMs": 300}"#)
            let first = Task { try await compass.database() }
            let second = Task { try await compass.database() }
            try await Task.sleep(for: .milliseconds(100))
            first.cancel()
            #expect(try await second.value.name == "SAMPL")
            await #expect(throws: BackendError.self) { try await first.value }
        }
    }

    @Test func descriptionsAndErrorsContainNoSecret() async throws {
        try await Fixture.run { fixture in
            let secret = "s3cret-Ænd-long"
            for account in [CompassAccount.password(user: "ana", password: secret), .personalAccessToken(secret)] {
                #expect(!"\(account)".contains(secret))
                let compass = fixture.compass(as: account)
                #expect(!"\(compass.settings)".contains(secret))
                for call in [
                    { @Sendable in try await compass.logIn() },
                    { @Sendable in _ = try await compass.record("SAMPL00000001") },
                    { @Sendable in _ = try await compass.create(before: .never) },
                ] {
                    let error = await #expect(throws: BackendError.self) { try await call() }
                    #expect(!"\(String(describing: error))".contains(secret))
                }
            }
        }
    }

    /// A server that repeats the request in its response.
    @Test func repeatedSecretIsRedacted() async throws {
        try await Fixture.run { fixture in
            let settings = fixture.settings
            let id = try await fixture.record(fixture.compass())
            let password = CompassAccount.password(user: "ana", password: "secret-of-ana")
            let compass = CompassClient(settings, as: password, client: fixture.client)
            let error = await #expect(throws: BackendError.self) {
                try await compass.edit(id, action: "secret-of-ana", before: .never)
            }
            #expect(error == .refused(["The action \"…\" does not exist."]))
        }
    }

    @Test func idIsOnePathSegment() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            for id in ["../../databases", "a/b", "a?b", "Ægir #1", "%2e%2e", "..."] {
                #expect(try await compass.record(id) == nil)
                #expect(try await compass.query(id) == nil)
                try await compass.delete(id, before: .never)
            }
            for id in ["", ".", ".."] {
                let refusal = BackendError.refused(["'\(id)' is not an id"])
                await #expect(throws: refusal) { try await compass.record(id) }
                await #expect(throws: refusal) { try await compass.delete(id, before: .never) }
                await #expect(throws: refusal) { try await compass.deleteQuery(id) }
                await #expect(throws: refusal) { try await compass.folder(id) }
            }
            #expect(try await fixture.stats()["logins"] == 1)
        }
    }

    /// Only Compass itself can report that a record does not exist.
    @Test func notFoundOfAnotherServerIsNotAbsence() async throws {
        try await Fixture.run { fixture in
            let sap = try SAPEmulator()
            try await withService({ try await sap.run(onRunning: $0) }) { port in
                // SAP's own user and password, whose 404 is not a response of Compass.
                let elsewhere = fixture.compass(as: .personalAccessToken("RklFTERQT1NUOnNhbmRib3g=")) {
                    $0.serverURL = "http://127.0.0.1:\(port)"
                }
                for call in [
                    { @Sendable in _ = try await elsewhere.record("SAMPL00000001") },
                    { @Sendable in try await elsewhere.delete("SAMPL00000001", before: .never) },
                ] {
                    let error = await #expect(throws: BackendError.self) { try await call() }
                    guard case .notProcessed = error else {
                        Issue.record("\(String(describing: error))")
                        return
                    }
                }
            }
            let mistaken = fixture.compass { $0.database = "OTHER" }
            await #expect(throws: BackendError.self) { try await mistaken.record("SAMPL00000001") }
        }
    }

    /// A proxy rejects a call, which does not concern the account.
    @Test(arguments: [302, 307, 403, 407]) func proxyErrorIsNotUnauthorized(status: Int) async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            try await fixture.switches("{\"proxyStatus\": \(status)}")
            for client in [compass, fixture.compass(), fixture.compass(as: Fixture.anasToken)] {
                for call in [
                    { @Sendable in try await client.logIn() }, { @Sendable in _ = try await client.record(id) },
                    { @Sendable in _ = try await client.recordType() }, { @Sendable in _ = try await client.folders() },
                    { @Sendable in _ = try await client.edit(id, before: .never) },
                    { @Sendable in try await client.revert(id) },
                    { @Sendable in try await client.delete(id, before: .never) },
                ] {
                    let error = await #expect(throws: BackendError.self) { try await call() }
                    guard case .notProcessed(let reason, nil) = error else {
                        Issue.record("\(String(describing: error))")
                        return
                    }
                    #expect(reason.hasPrefix("HTTP \(status) of a proxy or login page, not of HCL Compass"))
                }
            }
            try await fixture.switches(#"{"proxyStatus": 0}"#)
            #expect(try await compass.record(id) != nil)
        }
    }

    /// A server may lock an account after several attempts.
    @Test(arguments: [
        CompassAccount.password(user: "ana", password: "wrong"), .personalAccessToken("wrong"),
    ]) func whereARefusalIsFinalThereIsOneTry(account: CompassAccount) async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass(as: account) { $0.isRefusalFinal = true }
            let before = try await fixture.stats()["requests"] ?? 0
            for _ in 0..<3 {
                await withTaskGroup { group in
                    for _ in 0..<16 {
                        group.addTask {
                            let error = await #expect(throws: BackendError.self) {
                                try await compass.record("SAMPL00000001")
                            }
                            guard case .unauthorized = error else { return #expect(Bool(false), "\(error as Any)") }
                        }
                    }
                }
                await #expect(throws: BackendError.self) { try await compass.logIn() }
            }
            #expect(try await fixture.stats()["requests"] == before + 1)
        }
    }

    /// A password that is changed after the login: the expired token causes one attempt.
    @Test func finalRejectionIsTriedOnce() async throws {
        try await Fixture.run { fixture in
            for account in [Fixture.ana, Fixture.anasToken] {
                let compass = fixture.compass(as: account) { $0.isRefusalFinal = true }
                let id = try await fixture.record(compass)
                try await compass.logIn()
                try await compass.logOff()
                _ = try await compass.record(id)
                try await fixture.post("/sandbox/tokens/end", "{}")
                try await fixture.switches(#"{"refusesLogins": true}"#)
                await #expect(throws: BackendError.self) { try await compass.record(id) }
                let before = try await fixture.stats()["requests"]
                await #expect(throws: BackendError.self) { try await compass.record(id) }
                #expect(try await fixture.stats()["requests"] == before)
                try await fixture.switches(#"{"refusesLogins": false}"#)
            }
        }
    }

    @Test func forbiddenRecordIsRefusedWithMessage() async throws {
        try await Fixture.run { fixture in
            try fixture.system.perform([
                CompassChange(
                    user: "ana", fields: ["Headline": "hers", "Severity": "3-Average"], readers: ["ana"]),
                CompassChange(
                    user: "ana", fields: ["Headline": "all's", "Severity": "3-Average"], editors: ["ana"]),
            ])
            let bo = fixture.compass(as: Fixture.bo)
            await #expect(throws: BackendError.refused(["You may not see the record SAMPL00000001."])) {
                try await bo.record("SAMPL00000001")
            }
            #expect(try await bo.record("SAMPL00000002") != nil)
            for call in [
                { @Sendable in _ = try await bo.edit("SAMPL00000002", before: .never) },
                { @Sendable in try await bo.delete("SAMPL00000002", before: .never) },
            ] {
                await #expect(throws: BackendError.refused(["You may not change the record SAMPL00000002."])) {
                    try await call()
                }
            }
            #expect(try await bo.rows(of: try await fixture.query(bo, ["id"])).map { $0["id"] } == ["SAMPL00000002"])
            let service = fixture.compass(as: Fixture.service)
            #expect(try await service.rows(of: try await fixture.query(service, ["id"])).count == 2)
        }
    }
}
