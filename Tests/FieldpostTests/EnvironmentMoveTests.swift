import Backends
import Foundation
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import TenantMigration
import TestSupport
import Testing

/// Moves of an environment between two installations.
@Suite(.ownThreads) struct EnvironmentMoveTests {
    private let fixture: EnvironmentMoveFixture
    private static let objectCount: Int64 = 2_500

    /// The time of the test, in seconds since 1970; generations are greater.
    private let began = Int64(Date().timeIntervalSince1970)

    init() throws { fixture = try EnvironmentMoveFixture(objectCount: Self.objectCount) }

    private func state(at installation: String) throws -> (id: Int32, generation: Int64, position: Int64) {
        var connection = try Connection(installation)
        return try connection.run("SELECT id, generation, position FROM realm.environment WHERE name = 'acme'")[0]
            .decode(Int32.self, Int64.self, Int64.self)
    }

    @Test func moveCopiesAllRowsAndResealsSecrets() throws {
        try fixture.finish(fixture.transfer())
        let (id, generation, position) = try state(at: fixture.destination)
        #expect(id == 41 && generation >= began && position > began * Lineage.positionsPerSecondMax)
        #expect(try fixture.rows(of: .objects, in: id, at: fixture.destination).count == Int(Self.objectCount))
        var connection = try Connection(fixture.destination)
        let box = try fixture.box(at: fixture.destination)
        let here = EnvironmentID(rawValue: id)
        let (client, password, token) = try connection.run(
            """
            SELECT p.client_secret, b.password, t.token FROM access.provider p
            JOIN backend.connection b USING (environment_id) JOIN onboarding.refresh_token t USING (environment_id)
            WHERE p.environment_id = \(id)
            """
        )[0].decode(Bytea.self, Bytea.self, Bytea.self)
        #expect(try box.openText(client.bytes, at: SecretContext.clientSecret(here)) == "client")
        #expect(try box.openText(password.bytes, at: SecretContext.backendPassword(here)) == "password")
        #expect(try box.openText(token.bytes, at: SecretContext.refreshToken(here, person: 70)) == "token")
        // A new row does not get an imported number.
        let made = try connection.run(
            "INSERT INTO realm.realm (environment_id, path) VALUES (\(id), '/common') RETURNING id"
        )[0].decode(Int32.self)
        #expect(made > 90)
    }

    @Test func cutStreamResumesWhereItStopped() throws {
        let first = try fixture.bring(fixture.firstPage(of: fixture.stream()))
        #expect(first.status == 1)
        let second = try fixture.bring(fixture.stream(resume: EnvironmentMoveFixture.resume(first)))
        // Imported rows are not sent again.
        let count = try #require(second.errors.split(separator: " ").dropFirst().first.flatMap { Int64($0) })
        #expect(count < Self.objectCount, "\(second.errors)")
        try fixture.finish(fixture.line(second))
    }

    @Test func writeBlockCoversOneEnvironmentOnly() throws {
        _ = try fixture.transfer()
        var connection = try Connection(fixture.source)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        for table in ["realm.environment", "submission.ledger", "device.client", "access.person"] {
            let key = Statement(stringLiteral: table == "realm.environment" ? "id" : "environment_id")
            let name = Statement(stringLiteral: table)
            let error = #expect(throws: PostgresError.self) {
                try connection.run("UPDATE \(name) SET \(key) = \(key) WHERE \(key) = 7")
            }
            #expect(error?.isLocked == true, "\(table)")
        }
        // One statement takes the due keys of all environments.
        try connection.run("UPDATE pipeline.parked SET attempts = attempts + 1")
        #expect(try connection.run("SELECT attempts FROM pipeline.parked")[0].decode(Int32.self) == 3)
        // Retention deletes rows of the other environments.
        try connection.run("DELETE FROM submission.ledger")
        try connection.run("UPDATE realm.environment SET compacted_position = 1 WHERE id = 7")
        #expect(try connection.run("SELECT count(*) FROM submission.ledger")[0].decode(Int64.self) == 1)
        #expect(
            try connection.run("SELECT compacted_position FROM realm.environment WHERE id = 7")[0].decode(Int64.self)
                == 0)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 8")
    }

    /// An environment that was cut over does not prevent a restore of the others.
    @Test func restoreIgnoresCutOverEnvironment() throws {
        try fixture.move()
        var connection = try Connection(fixture.source)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        try connection.run(Lineage.restore)
        let rows = try connection.run("SELECT id, position > 1000000000 FROM realm.environment ORDER BY id")
        #expect(try rows.decode(Int32.self, Bool.self).map(\.1) == [false, true])
    }

    @Test func streamResumedElsewhereIsRejected() throws {
        let cut = try fixture.bring(fixture.firstPage(of: fixture.stream()))
        _ = try fixture.line(fixture.run(at: fixture.destination, "discard", "acme"))
        let result = try fixture.bring(fixture.stream(resume: EnvironmentMoveFixture.resume(cut)))
        #expect(result.status == 1 && result.errors.contains("export without --resume"), "\(result)")
        // A restarted copy is complete.
        _ = try fixture.transfer()
        #expect(
            try fixture.rows(of: .objects, in: state(at: fixture.destination).id, at: fixture.destination).count
                == Int(Self.objectCount))
    }

    /// The source is restored to a state during the copy: lost data must not be activated elsewhere.
    @Test func dataLostAtSourceIsNotActivated() throws {
        let cut = try fixture.bring(fixture.firstPage(of: fixture.stream()))
        var connection = try Connection(fixture.source)
        for table in MovedTable.writeBlocked {
            try connection.run("SELECT realm.let_go(7, \(table)::regclass)")
        }
        try connection.run([
            "DELETE FROM store.object WHERE environment_id = 7 AND position > 100",
            "UPDATE realm.environment SET position = 100 WHERE id = 7",
        ])
        let result = try fixture.bring(fixture.stream(resume: EnvironmentMoveFixture.resume(cut)))
        #expect(result.status == 1 && result.errors.contains("was restored during the copy"), "\(result)")
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        _ = try fixture.line(fixture.run(at: fixture.destination, "discard", "acme"))
        try fixture.finish(fixture.transfer())
    }

    /// The destination is restored before the activation: its earlier positions are never reused.
    @Test func restoredDestinationActivatesBeyondEarlierPositions() throws {
        let receipt = try fixture.transfer()
        var connection = try Connection(fixture.destination)
        try connection.run(Lineage.restore)
        #expect(try state(at: fixture.destination).generation == 0 && state(at: fixture.destination).position == 0)
        // Incomplete copies are neither checked nor repaired.
        let check = try fieldpost(
            ["check", "--settle", "0", "--json"], environment: fixture.variables(at: fixture.destination))
        #expect(check.status == 0, "\(check)")
        let repair = try fieldpost(
            ["repair", "--environment", "acme"], environment: fixture.variables(at: fixture.destination))
        #expect(repair.status == 1 && repair.errors.contains("incomplete or inactive copy"), "\(repair)")
        // A key was deferred here before the activation.
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('g', 41, 'k', 't', 0, 'k', 0, 'other', true, false, 1, '-infinity')
            """)
        // The destination's clock is behind, and so is the move's generation.
        let later = began * 2
        try connection.run("UPDATE realm.environment SET generation = \(later), position = \(later << 20)")
        try fixture.finish(receipt)
        #expect(
            try state(at: fixture.destination).generation == later + 1
                && state(at: fixture.destination).position == later << 20 + 1)
    }

    /// The destination is restored to a time before its activation: it is activated again with other positions than
    /// those allocated then.
    @Test func repeatedActivationUsesNewPositions() throws {
        let receipt = try fixture.transfer()
        let token = try fixture.line(fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        var connection = try Connection(fixture.destination)
        // Simulates an activation long ago.
        try connection.run("UPDATE realm.move SET generation = 5")
        _ = try fixture.line(fixture.run(at: fixture.destination, "activate", "acme", token, "--key-from", "KEY"))
        let state = try state(at: fixture.destination)
        #expect(state.generation >= began && state.position > began * Lineage.positionsPerSecondMax)
    }

    /// A rollback excludes a concurrent cut-over.
    @Test func rolledBackMoveIsNotCutOver() throws {
        _ = try fixture.transfer()
        var connection = try Connection(fixture.source)
        let move = try #require(try MoveStore.find("acme", on: &connection))
        _ = try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme"))
        #expect(throws: MoveFailure.self) {
            try MoveStore.markCutOver(move, to: nil, also: "SELECT 1", on: &connection)
        }
        #expect(throws: MoveFailure.self) { try MoveStore.rollBack(move, also: "SELECT 1", on: &connection) }
    }

    @Test func environmentIsActiveAtOneInstallationOnly() throws {
        let receipt = try fixture.transfer()
        // There was no cut-over.
        #expect(try fixture.run(at: fixture.destination, "activate", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try fixture.line(fixture.run(at: fixture.source, "roll-back", "acme")) == "acme is active here")
        // Beyond every generation of a lost timeline.
        #expect(try state(at: fixture.source).generation >= began)
        var connection = try Connection(fixture.source)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        // The copy belongs to a move that was rolled back.
        #expect(try fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try fixture.bring(fixture.stream()).errors.contains("another move of acme"))
        #expect(try fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY").status != 0)
        _ = try fixture.line(fixture.run(at: fixture.destination, "discard", "acme"))
        try fixture.move()
        #expect(try fixture.run(at: fixture.source, "roll-back", "acme").status != 0)
        let error = #expect(throws: PostgresError.self) {
            try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        }
        #expect(error?.isDataError == true)
    }
}
