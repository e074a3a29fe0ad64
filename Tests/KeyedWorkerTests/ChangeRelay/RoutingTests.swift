import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// Which changes are published where: the kind and what the realm is for decide together.
@Suite(.ownThreads) struct RoutingTests {
    private static let work = Topic(name: "work.events", partitions: 3)
    private static let places = Topic(name: "place.events", partitions: 3)

    @Test func kindAndClassOfRealmDecideTogether() {
        let routing = Routing([
            (.fieldTask, Route(to: Self.work, from: [.manager, .team])),
            (.location, Route(to: Self.places, from: [.user])), (.team, Route(to: Self.work, from: [.common])),
        ])
        var found: [String: Set<RealmClass.Name>] = [:]
        for kind in Kind.allCases {
            for realm in RealmClass.Name.allCases {
                guard let entry = routing.entry(of: kind.number), entry.includes(realm) else { continue }
                found["\(kind) on \(entry.topic.name)", default: []].insert(realm)
            }
        }
        #expect(
            found == [
                "fieldTask on work.events": [.manager, .team], "location on place.events": [.user],
                "team on work.events": [.common],
            ])
        #expect(Set(routing.kinds) == [.fieldTask, .location, .team])
        #expect(Set(routing.kinds(of: "work.events")) == [.fieldTask, .team])
        #expect(routing.topics == ["place.events", "work.events"])
        // Of a newer release.
        #expect(routing.entry(of: Kind.numberMax + 1) == nil && routing.entry(of: -1) == nil)
    }

    @Test func theTableOfKindsIsFollowed() {
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

    /// What is in another realm passes unpublished, whether it is read as news, for a new epoch, or for one topic; what
    /// is behind it is published all the same.
    @Test func anObjectInAnotherRealmIsNoEvent() async throws {
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
                Republish.ask(Topics.entry.name, in: flow.environment),
                Republish.ask(Topics.realm.name, in: flow.environment),
            ])
            try flow.publish("publishing topics again") { flow in
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
            var realms = KnownRealms()
            let found = try flow.read(topic, countMin: ids.count * times).map { try Event($0, &realms).id }
            #expect(Set(found) == ids && found.count == ids.count * times, "\(topic.name), time \(times)")
        }
    }
}
