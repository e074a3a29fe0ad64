import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// The kind and the realm's class determine together where changes are published.
@Suite(.ownThreads) struct RoutingTests {
    private static let work = Topic(name: "work.events", partitions: 3)
    private static let locations = Topic(name: "location.events", partitions: 3)

    @Test func kindAndClassOfRealmDecideTogether() {
        let routing = Routing([
            (.fieldTask, Route(to: Self.work, from: [.manager, .team])),
            (.location, Route(to: Self.locations, from: [.user])), (.team, Route(to: Self.work, from: [.common])),
        ])
        var realms: [String: Set<RealmClass.Name>] = [:]
        for kind in Kind.allCases {
            for realm in RealmClass.Name.allCases {
                guard let entry = routing.entry(of: kind.number), entry.includes(realm) else { continue }
                realms["\(kind) on \(entry.topic.name)", default: []].insert(realm)
            }
        }
        #expect(
            realms == [
                "fieldTask on work.events": [.manager, .team], "location on location.events": [.user],
                "team on work.events": [.common],
            ])
        #expect(Set(routing.kinds) == [.fieldTask, .location, .team])
        #expect(Set(routing.kinds(of: "work.events")) == [.fieldTask, .team])
        #expect(routing.topics == ["location.events", "work.events"])
        // A kind of a newer release.
        #expect(routing.entry(of: Kind.numberMax + 1) == nil && routing.entry(of: -1) == nil)
    }

    @Test func routingFollowsTheTableOfKinds() {
        let routing = Routing()
        #expect(routing.topics == Topics.all.map(\.name).sorted())
        for kind in Kind.allCases {
            let entry = routing.entry(of: kind.number)
            #expect(entry?.kind == kind.row.route.map { _ in kind } && entry?.topic == kind.row.route?.topic)
            for realm in RealmClass.Name.allCases {
                #expect((entry?.includes(realm) ?? false) == (kind.row.route?.realms.contains(realm) ?? false))
            }
        }
    }

    /// Changes in an unpublished realm are skipped in the change log, in a new epoch and in the republication of a
    /// topic; later ones are published nevertheless.
    @Test func objectInUnpublishedRealmIsNotPublished() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let (own, seen, user) = (UUID(), UUID(), UUID())
            let elsewhere: [(RealmPath, Kind)] = [
                (.manager, .timeEntry), (.team(UUID()), .timeEntry), (.common, .realms), (.users, .seenRecord),
                (.polls, .timeEntry), (.share(UUID()), .poll), (.catalogue(UUID()), .timeEntry),
            ]
            let others = elsewhere.map { ($0, $1, UUID()) }
            for (realm, kind, id) in others { try flow.put(try flow.key(realm, kind, id), "{}") }
            try flow.put(try flow.key(.user("ana@example.com"), .timeEntry, own), "{}")
            try flow.put(try flow.key(.seen("ana@example.com"), .seenRecord, seen), "{}")
            try flow.put(try flow.key(.users, .realms, user), "{}")
            try flow.publishAll()
            try expect(flow, entries: [own, seen], users: [user], times: 1)

            try flow.connection.run([
                Republish.request(Topics.entry.name, in: flow.environment),
                Republish.request(Topics.realm.name, in: flow.environment),
            ])
            try flow.publish("republication of topics") { flow in
                try flow.connection.run("SELECT FROM realm.republish").count == 0
            }
            try expect(flow, entries: [own, seen], users: [user], times: 2)

            try flow.connection.run(RelayStore.newEpoch)
            try flow.publishAll()
            try expect(flow, entries: [own, seen], users: [user], times: 3)
        }
    }

    private func expect(_ flow: borrowing Flow, entries: Set<UUID>, users: Set<UUID>, times: Int) throws {
        let expected: [(Topic, Set<UUID>)] = [(Topics.entry, entries), (Topics.realm, users), (Topics.poll, [])]
        for (topic, ids) in expected {
            var realms = RealmPathCache()
            let published = try flow.read(topic, countMin: ids.count * times).map { try Event($0, &realms).id }
            #expect(Set(published) == ids && published.count == ids.count * times, "\(topic.name), time \(times)")
        }
    }
}
