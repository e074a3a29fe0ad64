import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// A change between a decision's reads and its commit is a conflict: the decision is retried.
@Suite(.ownThreads) struct ConflictTests {
    enum Change: CaseIterable, Sendable { case position, removal, person, membership, team, copy }

    @Test(arguments: Change.allCases) func changeOfAnyReadObjectConflicts(_ change: Change) throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.report(ana, 1)
        try world.settle()
        try world.report(ana, 2)
        let kinds: [Change: (Kind, UUID, RealmPath)] = [
            .position: (.location, ana, try world.own(ana)), .removal: (.location, ana, try world.own(ana)),
            .person: (.person, ana, .common), .membership: (.membership, Membership.id(of: ana, in: red), .common),
            .team: (.team, red, .common), .copy: (.location, ana, .team(red)),
        ]
        let (kind, id, path) = try #require(kinds[change])
        let (realm, environment) = (try world.acme.realm(path), world.acme.id)
        try world.settle { connection in
            var batch = WriteBatch(environment: environment)
            let key = ObjectKey(realm: realm, kind: kind, id: id)
            if change == .position {
                batch.put(key, try CanonicalJSON(#"{"latitude":3,"longitude":1}"#), decision: 0, isEdit: true)
            } else {
                batch.delete(key, decision: 0, isEdit: true)
            }
            _ = try batch.commit(on: &connection)
        }
        #expect(world.missedCount == 1)
        #expect(try world.settleRepublished() == 0)
    }

    /// Inputs about one person share one decision: its copies are written once, and all inputs conflict together. Each
    /// input's own object is its first precondition.
    @Test(arguments: [false, true]) func inputsOfOnePersonShareADecision(isMissed: Bool) throws {
        var world = try LocationWorld()
        let (ana, ben) = (try world.person("ana"), try world.person("ben"))
        let teams = [
            try world.acme.makeTeam(members: [ana]), try world.acme.makeTeam(members: [ana]),
            try world.acme.makeTeam(members: [ana]),
        ]
        for person in [ana, ben] { try world.report(person, 1) }
        var subjects = [
            EventSubject(realm: try world.own(ben), kind: .location, id: ben),
            EventSubject(realm: try world.own(ana), kind: .location, id: ana),
            EventSubject(realm: .common, kind: .person, id: ana),
        ]
        subjects += teams.map { team in
            EventSubject(realm: .common, kind: .membership, id: Membership.id(of: ana, in: team))
        }
        var (handler, batch) = (LocationHandler(), WriteBatch(environment: world.acme.id))
        let items = subjects.map { subject in
            WorkItem<Never>(environment: world.acme.id, subject: subject, origin: .event, attemptCount: 0)
        }
        _ = try handler.decide(items, in: world.acme.id, batch: &batch, on: &world.acme.connection)
        if isMissed { try world.acme.delete(.team, teams[1], in: .common) }
        let outcome = try batch.commit(on: &world.acme.connection)
        #expect(outcome.conflicts == (isMissed ? [1, 2, 3, 4, 5] : []))
        #expect(outcome.positions.count == (isMissed ? 1 : 5))
        for (decision, key, _) in batch.positions(after: outcome).values {
            #expect(key.kind == subjects[decision].kind && key.id == subjects[decision].id)
            let realm = try world.acme.realm(subjects[decision].realm)
            #expect(key.realm == realm)
        }
        try world.settle()
    }

    /// Two workers process the same person concurrently: the second one's state is outdated.
    @Test func slowerWorkerConflicts() throws {
        var world = try LocationWorld()
        let ana = try world.person("ana")
        let red = try world.acme.makeTeam(members: [ana])
        try world.report(ana, 1)
        var (first, second) = (LocationHandler(), LocationHandler())
        var batches = [WriteBatch(environment: world.acme.id), WriteBatch(environment: world.acme.id)]
        func item(_ realm: RealmPath, _ kind: Kind, _ id: UUID) -> WorkItem<Never> {
            WorkItem(
                environment: world.acme.id, subject: EventSubject(realm: realm, kind: kind, id: id), origin: .event,
                attemptCount: 0)
        }
        _ = try first.decide(
            [item(try world.own(ana), .location, ana)], in: world.acme.id, batch: &batches[0],
            on: &world.acme.connection)
        try world.acme.remove(ana, from: red)
        _ = try second.decide(
            [item(.common, .membership, Membership.id(of: ana, in: red))], in: world.acme.id, batch: &batches[1],
            on: &world.acme.connection)
        #expect(try batches[1].commit(on: &world.acme.connection).positions.count == 1)
        #expect(try batches[0].commit(on: &world.acme.connection).conflicts == [0])
        try world.expectReferenceCopies()
        #expect(try world.paths(of: ana) == [.manager])
    }

    /// The members of a team are reprocessed only by the transaction that read the current team.
    @Test func teamCascadeRequiresCurrentTeam() throws {
        var world = try LocationWorld()
        let red = try world.acme.makeTeam(members: [try world.person("ana"), try world.person("ben")])
        var (handler, batch) = (LocationHandler(), WriteBatch(environment: world.acme.id))
        let item = WorkItem<Never>(
            environment: world.acme.id, subject: EventSubject(realm: .common, kind: .team, id: red), origin: .event,
            attemptCount: 0)
        _ = try handler.decide([item], in: world.acme.id, batch: &batch, on: &world.acme.connection)
        #expect(batch.defersDueKeys)
        try world.acme.delete(.team, red, in: .common)
        #expect(try batch.commit(on: &world.acme.connection).conflicts == [0])
        #expect(try parked(&world).isEmpty)
        batch = WriteBatch(environment: world.acme.id)
        _ = try handler.decide([item], in: world.acme.id, batch: &batch, on: &world.acme.connection)
        #expect(try batch.commit(on: &world.acme.connection).conflicts.isEmpty)
        let parked = try parked(&world)
        #expect(parked == ["/users/ana@example.com", "/users/ben@example.com"])
    }

    private func parked(_ world: inout LocationWorld) throws -> Set<String> {
        let rows = try world.acme.connection.run(
            """
            SELECT subject FROM pipeline.parked
            WHERE group_name = 'location-fan-out' AND topic = 'location.events' AND partition BETWEEN 0 AND 11
                AND NOT is_dead AND next_at <= now() AND reason LIKE '%team%'
            """)
        return Set(try rows.decode(String.self).compactMap { EventSubject($0)?.realm.description })
    }
}
