package import KeyedWorker
package import Model
import ObjectStore
package import Postgres

/// Drives a handler that makes no calls like a worker, without Kafka: processes all published events of its topics and
/// all due deferred keys of its group until none is left.
package struct Settling<H: Handler>: ~Copyable where H.Call == Never, H.CallResult == Never {
    /// Dead-lettered keys and their reasons.
    package private(set) var dead: [EventSubject: String] = [:]
    /// Decisions whose version check failed.
    package private(set) var missedCount = 0
    /// A hook that runs once, between the next load and its commit.
    package var meanwhile: ((inout Connection) throws -> Void)?

    private var handler: H
    private let group: String
    private let topics: [Topic]
    private var published: Int64 = 0
    private var directory = RealmDirectory()

    /// - Parameter service: The service of the handler.
    package init(_ handler: H, of service: ServiceDescription) {
        self.handler = handler
        group = service.name
        topics = service.topics
    }

    /// Makes the next ``settle(in:on:)`` republish all events.
    package mutating func republish() { published = 0 }

    /// Processes all pending events and due keys.
    package mutating func settle(in environment: EnvironmentID, on connection: inout Connection) throws {
        while true {
            var items = try events(in: environment, on: &connection)
            items += try due(in: environment, on: &connection)
            if items.isEmpty { return }
            try decide(items, in: environment, on: &connection)
        }
    }

    private mutating func decide(
        _ items: [WorkItem<Never>], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        var open = items
        while !open.isEmpty {
            var batch = WriteBatch(environment: environment)
            let dispositions = try handler.decide(open, in: environment, batch: &batch, on: &connection)
            if let meanwhile {
                self.meanwhile = nil
                try meanwhile(&connection)
            }
            let missed = try batch.commit(on: &connection).conflicts
            missedCount += missed.count
            var unfinished = open.indices.filter(missed.contains)
            for (index, item) in open.enumerated() where !missed.contains(index) {
                switch dispositions[index] {
                case .finished, .call: break
                case .reprocess: unfinished.append(index)
                case .deferred(let reason, _, _), .deadLettered(let reason): dead[item.subject] = reason
                }
            }
            open = unfinished.sorted().map { open[$0] }
        }
    }

    private mutating func events(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [WorkItem<Never>] {
        let kinds = topics.flatMap(\.kinds)
        let rows = try connection.run(
            Feed.changes(in: environment, after: published, kinds: kinds, countMax: 100_000))
        var items: [WorkItem<Never>] = []
        let realms = try directory.realms(
            of: Set(rows.map { row in try row.value(1, as: Int32.self) }), in: environment, on: &connection)
        for row in rows {
            published = try row.value(0)
            guard try row.value(6, as: Bool.self), let kind = Kind(number: try row.value(2)),
                let realm = realms[try row.value(1)], kind.row.route?.realms.contains(realm.realmClass) == true
            else { continue }
            let subject = EventSubject(realm: realm.path, kind: kind, id: try row.value(3))
            var item = WorkItem<Never>(environment: environment, subject: subject, origin: .event, attemptCount: 0)
            item.isEdit = try row.value(4) == published
            items.append(item)
        }
        return items
    }

    private func due(in environment: EnvironmentID, on connection: inout Connection) throws -> [WorkItem<Never>] {
        let rows = try connection.run(
            """
            DELETE FROM pipeline.parked
            WHERE group_name = \(group) AND environment_id = \(environment.rawValue) AND NOT is_dead
                AND next_at <= now()
            RETURNING subject
            """)
        return try rows.decode(String.self).compactMap { EventSubject($0) }
            .sorted { $0.description < $1.description }.map {
                WorkItem(environment: environment, subject: $0, origin: .retry, attemptCount: 0)
            }
    }
}
