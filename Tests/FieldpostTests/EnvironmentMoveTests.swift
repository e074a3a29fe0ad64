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

/// An environment goes from one installation to another.
@Suite(.ownThreads) struct EnvironmentMoveTests {
    private let place: MovedEnvironment
    private static let objectCount: Int64 = 2_500

    /// In seconds since 1970, which generations are beyond.
    private let began = Int64(Date().timeIntervalSince1970)

    init() throws { place = try MovedEnvironment(objectCount: Self.objectCount) }

    private func state(at place: String) throws -> (id: Int32, generation: Int64, position: Int64) {
        var connection = try Connection(place)
        return try connection.run("SELECT id, generation, position FROM realm.environment WHERE name = 'acme'")[0]
            .decode(Int32.self, Int64.self, Int64.self)
    }

    @Test func everyRowIsAtTheNewPlaceWithItsSecretsSealedAnew() throws {
        try place.finish(place.transfer())
        let (id, generation, position) = try state(at: place.new)
        #expect(id == 41 && generation >= began && position > began * Lineage.positionsPerSecondMax)
        #expect(try place.rows(of: .objects, in: id, at: place.new).count == Int(Self.objectCount))
        var connection = try Connection(place.new)
        let box = try place.box(at: place.new)
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
        // What is made here does not get a number that came along.
        let made = try connection.run(
            "INSERT INTO realm.realm (environment_id, path) VALUES (\(id), '/common') RETURNING id"
        )[0].decode(Int32.self)
        #expect(made > 90)
    }

    @Test func aCutStreamGoesOnWhereItStopped() throws {
        let first = try place.bring(place.firstPage(of: place.stream()))
        #expect(first.status == 1)
        let second = try place.bring(place.stream(resume: MovedEnvironment.resume(first)))
        // What had come did not come again.
        let count = try #require(second.errors.split(separator: " ").dropFirst().first.flatMap { Int64($0) })
        #expect(count < Self.objectCount, "\(second.errors)")
        try place.finish(place.line(second))
    }

    @Test func aHeldEnvironmentIsWrittenByNobodyAndOthersAre() throws {
        _ = try place.transfer()
        var connection = try Connection(place.old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        for table in ["realm.environment", "submission.ledger", "device.client", "access.person"] {
            let key = Statement(stringLiteral: table == "realm.environment" ? "id" : "environment_id")
            let name = Statement(stringLiteral: table)
            let error = #expect(throws: PostgresError.self) {
                try connection.run("UPDATE \(name) SET \(key) = \(key) WHERE \(key) = 7")
            }
            #expect(error?.isLocked == true, "\(table)")
        }
        // One statement takes what is due of all environments.
        try connection.run("UPDATE pipeline.parked SET attempts = attempts + 1")
        #expect(try connection.run("SELECT attempts FROM pipeline.parked")[0].decode(Int32.self) == 3)
        // So does what removes what is old, and it goes on elsewhere.
        try connection.run("DELETE FROM submission.ledger")
        try connection.run("UPDATE realm.environment SET compacted_position = 1 WHERE id = 7")
        #expect(try connection.run("SELECT count(*) FROM submission.ledger")[0].decode(Int64.self) == 1)
        #expect(
            try connection.run("SELECT compacted_position FROM realm.environment WHERE id = 7")[0].decode(Int64.self)
                == 0)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 8")
    }

    /// What one environment's move leaves behind keeps nobody else from being restored.
    @Test func anInstallationIsRestoredThatAnEnvironmentHasLeft() throws {
        try place.move()
        var connection = try Connection(place.old)
        try EnvironmentRows(id: 8, name: "other", backend: .init()).insert(on: &connection)
        try connection.run(Lineage.restore)
        let rows = try connection.run("SELECT id, position > 1000000000 FROM realm.environment ORDER BY id")
        #expect(try rows.decode(Int32.self, Bool.self).map(\.1) == [false, true])
    }

    @Test func aStreamThatGoesOnElsewhereIsRefused() throws {
        let cut = try place.bring(place.firstPage(of: place.stream()))
        _ = try place.line(place.run(at: place.new, "discard", "acme"))
        let said = try place.bring(place.stream(resume: MovedEnvironment.resume(cut)))
        #expect(said.status == 1 && said.errors.contains("export without --resume"), "\(said)")
        // What is begun anew is whole.
        _ = try place.transfer()
        #expect(
            try place.rows(of: .objects, in: state(at: place.new).id, at: place.new).count == Int(Self.objectCount))
    }

    /// The old place was restored to a state from while it was copied: what it has lost is not to live on elsewhere.
    @Test func whatTheOldPlaceHasLostDoesNotLiveOn() throws {
        let cut = try place.bring(place.firstPage(of: place.stream()))
        var connection = try Connection(place.old)
        for table in MovedTable.held {
            try connection.run("SELECT realm.let_go(7, \(table)::regclass)")
        }
        try connection.run([
            "DELETE FROM store.object WHERE environment_id = 7 AND position > 100",
            "UPDATE realm.environment SET position = 100 WHERE id = 7",
        ])
        let said = try place.bring(place.stream(resume: MovedEnvironment.resume(cut)))
        #expect(said.status == 1 && said.errors.contains("it was restored while it was copied"), "\(said)")
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        _ = try place.line(place.run(at: place.new, "discard", "acme"))
        try place.finish(place.transfer())
    }

    /// The new place is restored, and what was handed out there of the environment before counts for nothing.
    @Test func aNewPlaceThatIsRestoredBeforeItBeginsIsBeyondAllThatWas() throws {
        let receipt = try place.transfer()
        var connection = try Connection(place.new)
        try connection.run(Lineage.restore)
        #expect(try state(at: place.new).generation == 0 && state(at: place.new).position == 0)
        // Nobody compares, or mends, what is not whole.
        let check = try fieldpost(["check", "--settle", "0", "--json"], environment: place.variables(at: place.new))
        #expect(check.status == 0, "\(check)")
        let repair = try fieldpost(["repair", "--environment", "acme"], environment: place.variables(at: place.new))
        #expect(repair.status == 1 && repair.errors.contains("acme is arriving here"), "\(repair)")
        // Somebody had tried what was there of it.
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('g', 41, 'k', 't', 0, 'k', 0, 'other', true, false, 1, '-infinity')
            """)
        // The clock there is behind, and so is the move's generation.
        let later = began * 2
        try connection.run("UPDATE realm.environment SET generation = \(later), position = \(later << 20)")
        try place.finish(receipt)
        #expect(try state(at: place.new).generation == later + 1 && state(at: place.new).position == later << 20 + 1)
    }

    /// The new place has begun, and is restored to before that: it begins again, with other numbers than those that
    /// were handed out then.
    @Test func whatBeginsAgainIsBeyondWhatItHadBegunWith() throws {
        let receipt = try place.transfer()
        let permission = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        var connection = try Connection(place.new)
        // As if all of this was long ago.
        try connection.run("UPDATE realm.move SET generation = 5")
        _ = try place.line(place.run(at: place.new, "begin", "acme", permission, "--key-from", "KEY"))
        let state = try state(at: place.new)
        #expect(state.generation >= began && state.position > began * Lineage.positionsPerSecondMax)
    }

    /// Who takes it back, and who lets it go, at the same time: one of them does.
    @Test func aMoveThatWasTakenBackIsNotLeft() throws {
        _ = try place.transfer()
        var connection = try Connection(place.old)
        let move = try #require(try MoveStore.find("acme", on: &connection))
        _ = try place.line(place.run(at: place.old, "take-back", "acme"))
        #expect(throws: MoveFailure.self) {
            try MoveStore.markLeft(move, to: nil, also: "SELECT 1", on: &connection)
        }
        #expect(throws: MoveFailure.self) { try MoveStore.takeBack(move, also: "SELECT 1", on: &connection) }
    }

    @Test func onlyOneOfBothPlacesEverWorks() throws {
        let receipt = try place.transfer()
        // Nobody has let it go.
        #expect(try place.run(at: place.new, "begin", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try place.line(place.run(at: place.old, "take-back", "acme")) == "acme goes on here")
        // Beyond every generation that a lost history may have had.
        #expect(try state(at: place.old).generation >= began)
        var connection = try Connection(place.old)
        try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        // What arrived is of a move that is no more.
        #expect(try place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY").status != 0)
        #expect(try place.bring(place.stream()).errors.contains("another move of acme"))
        #expect(try place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY").status != 0)
        _ = try place.line(place.run(at: place.new, "discard", "acme"))
        try place.move()
        #expect(try place.run(at: place.old, "take-back", "acme").status != 0)
        let error = #expect(throws: PostgresError.self) {
            try connection.run("UPDATE realm.environment SET position = position + 1 WHERE id = 7")
        }
        #expect(error?.isDataError == true)
    }
}
