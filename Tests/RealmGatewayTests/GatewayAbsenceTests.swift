import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Permissions that are revoked while a device is offline.
@Suite(.ownThreads) struct GatewayAbsenceTests {
    /// The object that grants a permission.
    enum Hold: CaseIterable, Sendable {
        case membership, role, team, share
    }

    /// A realm that a person may open until the permission is revoked.
    private struct Held {
        let path: RealmPath
        let object: UUID
        let kind: Kind
        /// A write that the permission allows.
        let write: (op: String, fields: String?)
        let lose: @Sendable (GatewayFixture) throws -> Void
    }

    private static func hold(_ hold: Hold, _ me: UUID, _ fixture: GatewayFixture) async throws -> Held {
        let (team, task) = (UUID(), UUID())
        let done = (op: "patch", fields: Optional("{\"isCompleted\":true}"))
        switch hold {
        case .membership, .team:
            try fixture.makeTeam(team, members: [me])
            return Held(path: .team(team), object: task, kind: .fieldTask, write: done) { fixture in
                guard hold == .membership else { return try fixture.delete(.team, team, in: .common) }
                try fixture.remove(me, from: team)
            }
        case .role:
            try fixture.set(.manager, of: "ana@example.com")
            return Held(path: .manager, object: task, kind: .fieldTask, write: done) {
                try $0.set(.worker, of: "ana@example.com")
            }
        case .share:
            _ = try await fixture.device("ben@example.com")
            let owner = try fixture.person("ben@example.com")
            let share = Share.id(of: owner, with: me)
            try fixture.makeShare(
                share, owner: owner, recipient: me, emails: ["ben@example.com", "ana@example.com"])
            return Held(path: .share(share), object: task, kind: .note, write: ("delete", nil)) {
                try $0.delete(.share, share, in: .share(share))
            }
        }
    }

    /// The device reconnects with its cursor and a queued mutation: both are processed with the current permissions.
    @Test(arguments: Hold.allCases) func permissionRevokedWhileOfflineClosesTheRealm(hold: Hold) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let held = try await Self.hold(hold, try fixture.person("ana@example.com"), fixture)
            let path = held.path.description
            try fixture.put(held.kind, held.object, "{\"title\":\"old\"}", in: held.path)
            try await ana.sync()
            let key = "\(held.kind.rawValue)/\(held.object.text)"
            let shown = await ana.shown(path)
            #expect(shown[key] == "{\"title\":\"old\"}")
            let (highest, most) = (await ana.highest[path], await ana.mostHeld[path])
            #expect(await ana.cursors[path] != nil)
            // While it is offline.
            try held.lose(fixture)
            try fixture.put(held.kind, held.object, "{\"title\":\"secret\"}", in: held.path)
            try fixture.put(held.kind, UUID(), "{\"title\":\"secret\"}", in: held.path)
            let late = await ana.mutation(
                held.write.op, held.object, held.write.fields, kind: held.kind.rawValue, in: path)
            #expect(try await ana.send([late]).results == ["realm-not-permitted"])
            try await ana.sync()
            #expect(await ana.closed == [path])
            let (left, isOpen) = (await ana.shown(path), await ana.openRealms.contains(path))
            #expect(left.isEmpty && !isOpen)
            let (newest, mostNow) = (await ana.highest[path], await ana.mostHeld[path])
            #expect(newest == highest && mostNow == most)
            #expect(try fixture.stored(path)[key] == "{\"title\":\"secret\"}")
        }
    }
}
