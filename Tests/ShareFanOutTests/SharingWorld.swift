import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// People who share items, in a database of their own, and the service. Writes become events as in the relay; the
/// service gets them when the test delivers them.
struct SharingWorld: ~Copyable {
    struct Person: Hashable, Sendable {
        let email: String
        let id: UUID
        var path: RealmPath { RealmPath("/users/\(email)") ?? .common }
    }

    /// An item, by kind and id.
    struct Item: Hashable, Sendable {
        var kind: SharedItem.ItemKind
        let id: UUID
    }

    var acme: TestEnvironment
    var handler: ShareHandler
    let people: [Person]
    /// Keys that the service deferred.
    private(set) var parked: Set<EventSubject> = []
    private var collectedPosition: Int64 = 0
    /// Number of writes of each link, for its time. Two links may have equal times; so may a recreated share.
    private var writeCounts: [UUID: Int64] = [:]

    init(people names: [String] = ["ana", "ben", "cho"], _ limits: ShareLimits = ShareLimits()) throws {
        var acme = try TestEnvironment()
        let people = names.map { Person(email: "\($0)@example.com", id: UUID()) }
        try acme.connection.run(
            """
            INSERT INTO access.person (environment_id, email, object_id)
            SELECT \(acme.id.rawValue), p.email, p.id
            FROM unnest(\(people.map(\.email)), \(people.map(\.id))) AS p(email, id)
            """)
        self.acme = acme
        self.people = people
        handler = ShareHandler(limits)
    }

    // MARK: People

    /// Writes an object as a device does. As in the gateway, restoring one removes its `DeletedObject`.
    mutating func put(_ kind: Kind, _ id: UUID, _ json: String, in path: RealmPath, isEdit: Bool = true) throws {
        let key = ObjectKey(realm: try acme.realm(path), kind: kind, id: id)
        let before = try acme.connection.run(RealmObject.load([key], in: acme.id)).first.flatMap { try RealmObject($0) }
        var batch = WriteBatch(environment: acme.id)
        batch.put(key, try CanonicalJSON(json), decision: 0, isEdit: isEdit)
        if before?.isDeleted == true { batch.delete(Self.deletedKey(key), decision: 0) }
        _ = try batch.commit(on: &acme.connection)
    }

    /// Deletes an object as a device does. As in the gateway, its content is retained.
    mutating func delete(_ kind: Kind, _ id: UUID, in path: RealmPath) throws {
        let key = ObjectKey(realm: try acme.realm(path), kind: kind, id: id)
        let before = try acme.connection.run(RealmObject.load([key], in: acme.id)).first.flatMap { try RealmObject($0) }
        var batch = WriteBatch(environment: acme.id)
        batch.delete(key, decision: 0, isEdit: true)
        if path.email != nil, let fields = before?.fields,
            let deleted = DeletedObject(kind, fields.bytes, deletedAt: .now())
        {
            batch.put(Self.deletedKey(key), try CanonicalJSON(encoding: deleted), decision: 0)
        }
        _ = try batch.commit(on: &acme.connection)
    }

    private static func deletedKey(_ key: ObjectKey) -> ObjectKey {
        ObjectKey(realm: key.realm, kind: .deletedObject, id: key.id)
    }

    mutating func write(_ item: Item, _ text: String, of owner: Person) throws {
        try put(item.kind.kind, item.id, Self.json(item.kind, text), in: owner.path)
    }

    mutating func share(_ item: Item, of owner: Person, with recipient: UUID) throws {
        let id = SharedItem.id(of: item.id, with: recipient)
        let count = writeCounts[id, default: 0]
        writeCounts[id] = count + 1
        let since = Timestamp(millisecondsSinceEpoch: 1_400_000_000_000 + count * 60_000)
        let fields = """
            {"kind":"\(item.kind.rawValue)","item":"\(item.id.text)","recipient":"\(recipient.text)","since":"\(since)"}
            """
        try put(.sharedItem, id, fields, in: owner.path)
    }

    mutating func unshare(_ item: Item, of owner: Person, with recipient: UUID) throws {
        try delete(.sharedItem, SharedItem.id(of: item.id, with: recipient), in: owner.path)
    }

    /// Removes a copy as its recipient.
    mutating func remove(_ item: Item, of owner: Person, by recipient: Person) throws {
        try delete(item.kind.kind, item.id, in: Self.path(owner, recipient))
    }

    /// Ends a share as either person, whom the gateway records in their own realm; without one, as an integration.
    mutating func end(_ owner: Person, _ recipient: Person, by ender: Person? = nil) throws {
        let id = Share.id(of: owner.id, with: recipient.id)
        if let ender {
            let share = Share(owner: owner.id, recipient: recipient.id, endedBy: ender.id)
            let json = String(decoding: try CanonicalJSON(encoding: share).bytes, as: UTF8.self)
            try put(.share, id, json, in: ender.path, isEdit: false)
        }
        try delete(.share, id, in: Self.path(owner, recipient))
    }

    /// Returns an item's fields as they are stored.
    static func json(_ kind: SharedItem.ItemKind, _ text: String) -> String {
        switch kind {
        case .appointment: #"{"why": "\#(text)", "when": "2015-03-30T08:00:00.000Z", "durationMinutes": 30}"#
        case .note: #"{"body": "", "title": "\#(text)", "isDone": false, "isTask": true}"#
        }
    }

    static func path(_ owner: Person, _ recipient: Person) -> RealmPath {
        .share(Share.id(of: owner.id, with: recipient.id))
    }

    // MARK: Stored data

    /// Returns the objects of a realm, as `Kind/id`: fields.
    mutating func stored(_ path: RealmPath) throws -> [String: String] {
        let rows = try acme.connection.run(
            """
            SELECT k.name || '/' || o.id, o.fields FROM store.object o
            JOIN realm.realm r ON (r.environment_id, r.id) = (o.environment_id, o.realm_id)
            JOIN realm.kind k ON k.number = o.kind
            WHERE r.path = \(path.description) AND NOT o.deleted
            """)
        return Dictionary(uniqueKeysWithValues: try rows.decode(String.self, String.self).map { ($0, $1) })
    }

    /// Returns the copies that a recipient has of an owner's items.
    mutating func copies(_ owner: Person, _ recipient: Person) throws -> [String: String] {
        try stored(Self.path(owner, recipient)).filter { !$0.key.hasPrefix("Share/") }
    }

    /// Returns a person's own items.
    mutating func items(_ person: Person) throws -> [String: String] {
        try stored(person.path).filter { $0.key.hasPrefix("Note/") || $0.key.hasPrefix("Appointment/") }
    }

    /// Returns the objects of a kind in a person's own realm, by id.
    mutating func objects<Fields: Decodable>(
        _ kind: Kind, of person: Person, as type: Fields.Type
    ) throws -> [UUID: Fields] {
        var objects: [UUID: Fields] = [:]
        for (key, json) in try stored(person.path) where key.hasPrefix("\(kind.rawValue)/") {
            let id = try #require(UUID(uuidString: String(key.dropFirst(kind.rawValue.count + 1))))
            objects[id] = try JSONDecoder().decode(type, from: Data(json.utf8))
        }
        return objects
    }

    /// Returns the content of a person's deleted objects, by their ids.
    mutating func deleted(_ person: Person) throws -> [UUID: DeletedObject] {
        try objects(.deletedObject, of: person, as: DeletedObject.self)
    }

    /// Returns what is no longer shared with a person.
    mutating func ended(_ person: Person) throws -> [UUID: EndedShare] {
        try objects(.endedShare, of: person, as: EndedShare.self)
    }

    /// Returns the texts of a person's notices with these codes, sorted.
    mutating func notices(
        _ person: Person, _ codes: Set<Notice.Code> = [.shareCancelled, .itemDeleted]
    ) throws -> [String] {
        try objects(.notice, of: person, as: Notice.self).values.filter { codes.contains($0.code) }.map(\.text).sorted()
    }

    mutating func shares(_ person: Person) throws -> Int {
        try stored(person.path).keys.count { $0.hasPrefix("Share/") }
    }

    mutating func links(_ person: Person) throws -> [String: String] {
        try stored(person.path).filter { $0.key.hasPrefix("SharedItem/") }
    }

    /// Whether both references are newer than the share: a device detects a share by a change in its person's own
    /// realm.
    mutating func areReferencesCurrent(_ owner: Person, _ recipient: Person) throws -> Bool {
        let id = Share.id(of: owner.id, with: recipient.id)
        let rows = try acme.connection.run(
            """
            SELECT r.path, o.position FROM store.object o
            JOIN realm.realm r ON (r.environment_id, r.id) = (o.environment_id, o.realm_id)
            WHERE o.environment_id = \(acme.id.rawValue) AND o.kind = \(Kind.share) AND o.id = \(id) AND NOT o.deleted
            """)
        let positions = Dictionary(uniqueKeysWithValues: try rows.decode(String.self, Int64.self).map { ($0, $1) })
        guard let newShares = positions[Self.path(owner, recipient).description] else { return true }
        return [owner, recipient].allSatisfy { positions[$0.path.description] ?? 0 >= newShares }
    }

    mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    // MARK: Events

    /// Returns changed objects of published kinds, in the order of positions.
    mutating func collect(all: Bool = false) throws -> [WorkItem<Never>] {
        let rows = try acme.connection.run(
            """
            SELECT r.path, o.kind, o.id, o.position, o.position = o.edit_position FROM store.object o
            JOIN realm.realm r ON (r.environment_id, r.id) = (o.environment_id, o.realm_id)
            WHERE o.environment_id = \(acme.id.rawValue) AND o.position > \(all ? 0 : collectedPosition)
            ORDER BY o.position
            """)
        var results: [WorkItem<Never>] = []
        for (text, kind, id, position, isEdit) in try rows.decode(
            String.self, Kind.self, UUID.self, Int64.self, Bool.self)
        {
            collectedPosition = max(collectedPosition, position)
            let path = try #require(RealmPath(text))
            guard kind.row.route?.realms.contains(path.realmClass.name) == true else { continue }
            let subject = EventSubject(realm: path, kind: kind, id: id)
            var item = WorkItem<Never>(environment: acme.id, subject: subject, origin: .event, attemptCount: 0)
            item.isEdit = isEdit
            results.append(item)
        }
        return results
    }

    /// Returns a handler's decisions about events, not yet committed.
    mutating func decide(
        _ inputs: [WorkItem<Never>], by handler: inout ShareHandler
    ) throws -> (batch: WriteBatch, dispositions: [Disposition<Never>]) {
        var batch = WriteBatch(environment: acme.id)
        let dispositions = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        return (batch, dispositions)
    }

    /// Commits a batch.
    ///
    /// - Returns: The inputs to retry.
    mutating func commit(
        _ batch: WriteBatch, _ inputs: [WorkItem<Never>], _ dispositions: [Disposition<Never>]
    ) throws -> [WorkItem<Never>] {
        let outcome = try batch.commit(on: &acme.connection)
        var again: [WorkItem<Never>] = []
        for (index, (input, next)) in zip(inputs, dispositions).enumerated() {
            if outcome.conflicts.contains(index) {
                again.append(input)
                continue
            }
            switch next {
            case .finished: parked.remove(input.subject)
            case .reprocess: again.append(input)
            case .deferred: parked.insert(input.subject)
            case .call, .deadLettered: Issue.record("\(input.subject): \(next)")
            }
        }
        return again
    }

    /// Delivers events until there are none, including those of the service's own writes.
    mutating func settle(_ more: [WorkItem<Never>] = []) throws {
        var inputs = Self.merged(more + (try collect()))
        var batchCount = 0
        while !inputs.isEmpty {
            batchCount += 1
            try #require(batchCount < 200, "the service does not become idle")
            var batch = WriteBatch(environment: acme.id)
            let dispositions = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
            inputs = Self.merged(try commit(batch, inputs, dispositions) + collect())
        }
    }

    /// Merges events of a key into one, which is an edit if one of them is.
    static func merged(_ items: [WorkItem<Never>]) -> [WorkItem<Never>] {
        var indexes: [EventSubject: Int] = [:]
        var merged: [WorkItem<Never>] = []
        for item in items {
            if let index = indexes[item.subject] {
                if item.isEdit { merged[index].isEdit = true }
            } else {
                indexes[item.subject] = merged.count
                merged.append(item)
            }
        }
        return merged
    }

    /// Retries all deferred keys.
    mutating func retryParked() throws {
        try settle(
            parked.map { WorkItem(environment: acme.id, subject: $0, origin: .retry, attemptCount: 0) })
    }
}
