import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

/// Injected faults in derived records: each is reported once.
@Suite(.ownThreads) struct CheckRecordsTests {
    private let ana = UUID()
    private let own: RealmPath

    init() throws { own = try .user("ana@example.com") }

    @Test func checkFindsOrphanedMemberships() throws {
        var environment = try TestEnvironment()
        let (bo, eva, lost, stray) = (UUID(), UUID(), UUID(), UUID())
        for (name, id) in [("ana", ana), ("bo", bo), ("eva", eva), ("lost", lost)] { try environment.letIn(name, id) }
        let team = try environment.makeTeam(members: [ana, bo, lost])
        let old = try environment.makeTeam(members: [ana])
        #expect(try checked("memberships", environment).isEmpty)

        try environment.delete(.person, bo, in: .common)
        try environment.delete(.team, old, in: .common)
        try environment.put(
            [(stray, "{\"person\":\"\(eva.text)\",\"team\":\"\(team.text)\"}")], .membership, into: .common)
        try environment.connection.run("DELETE FROM store.object WHERE kind = \(Kind.person) AND id = \(lost)")
        let right = Membership.id(of: eva, in: team).text
        func key(_ person: UUID, _ team: UUID) -> String {
            "/common/Membership/\(Membership.id(of: person, in: team).text)"
        }
        let isLost = "\(key(lost, team)): its person \(lost.text) does not exist, not even as a tombstone"
        #expect(
            try checked("memberships", environment)
                == [
                    "\(key(bo, team)): its person \(bo.text) was removed",
                    "\(key(ana, old)): its team \(old.text) was removed",
                    "/common/Membership/\(stray.text): its id is not \(right), derived from its person and team",
                    isLost,
                ].sorted())

        let dry = try fieldpost(
            "repair", "--only", "memberships", "--settle", "0", "--dry-run", "--database", environment.conninfo)
        #expect(dry.status == 1 && dry.output.contains("delete it if its person or team was deleted"), "\(dry)")
        #expect(try checked("memberships", environment).count == 4)
        // Only memberships of deleted people and teams are deleted; missing ones may be restored.
        let result = try fieldpost(
            "repair", "--only", "memberships", "--settle", "0", "--yes", "--database", environment.conninfo)
        #expect(result.status == 1 && result.output.contains("3 repaired"), "\(result)")
        #expect(
            result.output.contains("restore the missing object, or have a manager delete the membership"), "\(result)")
        #expect(try checked("memberships", environment) == [isLost])
        let audited = try environment.connection.run(
            "SELECT count(*) FROM access.audit WHERE action = 'objects.repaired'")
        #expect(try audited[0].decode(Int64.self) == 3)
    }

    @Test func checkFindsCatalogueInconsistencies() throws {
        var environment = try TestEnvironment()
        let id = environment.id.rawValue
        let (tree, other, catalogue, node) = (UUID(), UUID(), UUID(), UUID())
        try environment.put([(UUID(), "{\"catalogue\":\"\(catalogue.text)\"}")], .user, into: own)
        try environment.put([(node, #"{"title":"A"}"#)], .reportingTreeNode, into: .catalogue(catalogue))
        try environment.connection.run([
            """
            INSERT INTO audience.tree (environment_id, digest, digests, nodes)
            VALUES (\(id), \(tree), uuid_send(\(node)) || uuid_send(\(node)),
                jsonb_build_object(\(node)::text, '{}'::jsonb))
            """,
            "INSERT INTO audience.catalogue (environment_id, id, tree) VALUES (\(id), \(catalogue), \(tree))",
            """
            INSERT INTO audience.person (environment_id, email, tree, catalogue, read_at, changed_at)
            VALUES (\(id), 'ana@example.com', \(tree), \(catalogue), now(), now())
            """,
        ])
        #expect(try checked("catalogues", environment).isEmpty)

        try environment.put([(UUID(), #"{"title":"B"}"#)], .reportingTreeNode, into: .catalogue(catalogue))
        #expect(
            try checked("catalogues", environment)
                == ["/catalogues/\(catalogue.text): it has 2 nodes, but its tree has 1"])
        // Without the poller the inconsistency remains and is reported.
        let result = try fieldpost(
            "repair", "--only", "catalogues", "--settle", "0", "--wait", "0", "--yes", "--database",
            environment.conninfo)
        #expect(result.status == 1 && result.output.contains("backend-poller has not compared it"), "\(result)")
        let counted = try checked("catalogues", environment)
        #expect(counted == ["/catalogues/\(catalogue.text): its recount is not yet compared with the back end"])
        try environment.connection.run("UPDATE audience.catalogue SET tree = \(tree)")
        try environment.connection.run("UPDATE audience.person SET catalogue = \(other), tree = \(other)")
        let person = "/users/ana@example.com: "
        let all = try checked("catalogues", environment)
        #expect(
            all == [
                "/catalogues/\(catalogue.text): it has 2 nodes, but its tree has 1",
                person + "its catalogue \(other.text) does not exist",
                person + "its tree \(other.text) does not exist",
                person + "no User object there refers to the catalogue \(other.text)",
            ])
        try environment.connection.run("UPDATE audience.catalogue SET tree = \(other)")
        #expect(
            try checked("catalogues", environment).first
                == "/catalogues/\(catalogue.text): its tree \(other.text) does not exist")
    }

    @Test func checkFindsLedgerInconsistencies() throws {
        var environment = try TestEnvironment()
        let (good, open, unknown, stuck) = (UUID(), UUID(), UUID(), UUID())
        let released = #"{"status":"released","submitRequested":true}"#
        try environment.put([(good, released), (open, released), (unknown, released)], .timeEntry, into: own)
        try environment.put([(stuck, #"{"status":"submitted"}"#)], .timeEntry, into: own)
        let (id, realm) = (environment.id.rawValue, try environment.realm(own))
        for entry in [good, open, unknown, stuck] {
            try environment.connection.run(
                """
                INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation,
                    edit_position, lease_until, logged_at)
                VALUES (\(id), \(entry), \(realm), 1, 'settled', 'create', 1000000, now(), 1)
                """)
        }
        #expect(try checked("submissions", environment).isEmpty)

        try environment.connection.run([
            """
            UPDATE submission.ledger SET phase = 'open', lease_until = now() + interval '1 hour'
            WHERE entry_id = \(open)
            """,
            "DELETE FROM submission.ledger WHERE entry_id = \(unknown)",
            """
            UPDATE submission.ledger SET phase = 'open', lease_until = now() - interval '1 hour'
            WHERE entry_id = \(stuck)
            """,
        ])
        let prefix = "/users/ana@example.com/TimeEntry/"
        #expect(
            try checked("submissions", environment)
                == [
                    "\(prefix)\(open.text): its status is released, but its attempt is open",
                    "\(prefix)\(unknown.text): its status is released, but the ledger has no row",
                    "\(prefix)\(stuck.text): an attempt (open) has exceeded its lease",
                ].sorted())
        // Without a back end an integration processes entries, and there is no ledger.
        try environment.connection.run("DELETE FROM backend.connection")
        #expect(try checked("submissions", environment).allSatisfy { !$0.contains("ledger has no row") })
    }

    @Test func checkFindsUnregisteredMirrors() throws {
        var environment = try TestEnvironment()
        let (good, unknown, missing) = (UUID(), UUID(), UUID())
        for defect in [good, unknown, missing] { try environment.put([(defect, "{}")], .defect, into: own) }
        let (id, realm) = (environment.id.rawValue, try environment.realm(own))
        try environment.connection.run(
            """
            INSERT INTO defect.mirror (environment_id, defect_id, realm_id)
            SELECT \(id), i, \(realm) FROM unnest(\([good, unknown, missing])) AS u(i)
            """)
        #expect(try checked("defects", environment).isEmpty)
        try environment.connection.run("DELETE FROM defect.mirror WHERE defect_id = \(unknown)")
        try environment.connection.run("DELETE FROM store.object WHERE id = \(missing)")
        #expect(
            try checked("defects", environment)
                == [
                    "/users/ana@example.com/Defect/\(unknown.text): defect.mirror has no row of it",
                    "/users/ana@example.com/Defect/\(missing.text): its mirror does not exist",
                ].sorted())
        // Without a tracker there is no comparison, which is the reported reason.
        let result = try fieldpost(
            "repair", "--only", "defects", "--settle", "0", "--wait", "0", "--yes", "--database", environment.conninfo)
        #expect(result.status == 1 && result.output.contains("defect-notifier has"), "\(result)")
    }

    @Test func checkFindsResponsesAheadOfSequence() throws {
        var environment = try TestEnvironment()
        try environment.put([(UUID(), #"{"text":"Hello"}"#)], .note, into: own)
        let (good, unknown, ahead, later) = (UUID(), UUID(), UUID(), UUID())
        let id = environment.id.rawValue
        for client in [good, unknown, ahead, later] {
            try environment.connection.run([
                """
                INSERT INTO device.client (environment_id, person_id, client_id, next_sequence)
                VALUES (\(id), 1, \(client), 2)
                """,
                """
                INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position)
                VALUES (\(id), 1, \(client), 1, 1)
                """,
            ])
        }
        #expect(try checked("devices", environment).isEmpty)
        try environment.connection.run([
            "DELETE FROM device.client WHERE client_id = \(unknown)",
            "UPDATE device.client SET next_sequence = 1 WHERE client_id = \(ahead)",
            "UPDATE device.mutation SET position = 1000 WHERE client_id = \(later)",
        ])
        let isLater = "client \(later.text): its mutation 1 was accepted at 1000, which is not allocated"
        #expect(
            try checked("devices", environment)
                == [
                    "client \(unknown.text): has stored responses but no client row",
                    "client \(ahead.text): its mutation 1 has a response, but 1 is expected", isLater,
                ].sorted())
        // The reported manual action repairs it.
        let result = try fieldpost(
            "repair", "--only", "devices", "--settle", "0", "--yes", "--database", environment.conninfo)
        #expect(result.status == 1 && result.output.contains("fieldpost restore --force"), "\(result)")
        let restored = try fieldpost("restore", "--force", "--database", environment.conninfo)
        #expect(restored.status == 0, "\(restored)")
        #expect(try !checked("devices", environment).contains(isLater))
    }

    @Test func checkFindsDeferredKeysWithoutObject() throws {
        var environment = try TestEnvironment()
        let (task, gone, missing, dead, untried) = (UUID(), UUID(), UUID(), UUID(), UUID())
        try environment.put([(task, #"{"title":"A"}"#), (gone, #"{"title":"B"}"#)], .fieldTask, into: .manager)
        try environment.delete(.fieldTask, gone, in: .manager)
        for id in [task, gone] { try park("/manager/FieldTask/\(id.text)", &environment) }
        // A change of a team defers such keys, and the worker removes them.
        try park("/manager/FieldTask/\(untried.text)", attempts: 0, &environment)
        #expect(try checked("parked", environment).isEmpty)
        try park("/manager/FieldTask/\(missing.text)", &environment)
        try park("/manager/FieldTask/\(dead.text)", isDead: true, &environment)
        #expect(
            try checked("parked", environment)
                == [
                    "/manager/FieldTask/\(missing.text): deferred by task-fan-out, but the object does not exist",
                    "/manager/FieldTask/\(dead.text): dead-lettered by task-fan-out, but the object does not exist",
                ].sorted())
    }

    @Test func checkFindsRelayAheadOfCounter() throws {
        var environment = try TestEnvironment()
        try environment.put([(UUID(), #"{"text":"Hello"}"#)], .note, into: own)
        try environment.connection.run(
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            SELECT id, generation, 1, 1, position FROM realm.environment
            """)
        #expect(try checked("relay", environment).isEmpty)
        try environment.connection.run("UPDATE realm.relay SET position = position + 1")
        #expect(try checked("relay", environment) == ["relay: is at position 2, but the counter is at 1"])
        try environment.connection.run("UPDATE realm.relay SET generation = generation + 1")
        #expect(try checked("relay", environment).count == 1)
        #expect(try checked("relay", environment)[0].contains("has generation"))
        let result = try fieldpost(
            "repair", "--only", "relay", "--settle", "0", "--yes", "--database", environment.conninfo)
        #expect(result.status == 1 && result.output.contains("fieldpost restore --force"), "\(result)")
        let restored = try fieldpost("restore", "--force", "--database", environment.conninfo)
        #expect(restored.status == 0, "\(restored)")
        #expect(try checked("relay", environment).isEmpty)
    }

    private func park(
        _ key: String, isDead: Bool = false, attempts: Int32 = 1, _ environment: inout TestEnvironment
    ) throws {
        try environment.connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('task-fan-out', \(environment.id.rawValue), \(key), 'task.events', 0, \(key), 0,
                'closed', \(isDead),
                false, \(attempts), now() + interval '1 hour')
            """)
    }
}
