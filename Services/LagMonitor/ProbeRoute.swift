import Access
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The objects of a probe: its note, the link that shares the note, and the copy.
struct ProbeRoute: Sendable {
    let environment: EnvironmentID
    let note: ObjectKey
    let link: ObjectKey
    let copy: ObjectKey
    /// The recipient of the shared note.
    let reader: UUID

    /// The two people of a probe. Neither of them can log in.
    static let people = [
        People.Claim(id: id(1), email: "probe-writer@fieldpost.invalid"),
        People.Claim(id: id(2), email: "probe-reader@fieldpost.invalid"),
    ]
    private static let noteID = id(3)

    private static func id(_ number: UInt8) -> UUID {
        UUID(uuid: (0xF1, 0xE1, 0xD9, number, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, number))
    }

    init(_ environment: EnvironmentID, writerRealm: Int32, shareRealm: Int32) {
        self.environment = environment
        reader = Self.people[1].id
        note = ObjectKey(realm: writerRealm, kind: .note, id: Self.noteID)
        link = ObjectKey(realm: writerRealm, kind: .sharedItem, id: SharedItem.id(of: Self.noteID, with: reader))
        copy = ObjectKey(realm: shareRealm, kind: .note, id: Self.noteID)
    }

    /// The realm of objects that the first person shares with the second.
    static var share: RealmPath { .share(Share.id(of: people[0].id, with: people[1].id)) }
}

extension Connection {
    /// Adds the probe's people where they are missing.
    ///
    /// - Returns: `nil` if the environment does not exist.
    mutating func makeProbeRoute(through name: String) throws -> ProbeRoute? {
        let rows = try run("SELECT id FROM realm.environment WHERE name = \(name)")
        guard let environment = try rows.first?.decode(EnvironmentID.self) else { return nil }
        if let problem = try People.claim(ProbeRoute.people, in: environment, on: &self).compactMap(\.self).first {
            throw PostgresError(sqlState: nil, message: problem)
        }
        let people = ProbeRoute.people.map { (id: $0.id, name: "Probe") }
        try People.add(people, in: environment, on: &self)
        let paths = try ProbeRoute.people.compactMap(\.email).map { try RealmPath.user($0) }
        var directory = RealmDirectory()
        let realms = try directory.ids(of: paths + [ProbeRoute.share], in: environment, create: true, on: &self)
        guard let writer = realms[paths[0]], let share = realms[ProbeRoute.share] else { return nil }
        return ProbeRoute(environment, writerRealm: writer, shareRealm: share)
    }

    /// Writes the next number into the note, and shares it if it is not shared.
    ///
    /// - Returns: `nil` if another monitor has written meanwhile.
    mutating func sendProbe(_ route: ProbeRoute) throws -> Int64? {
        let objects = try RealmObject.byKey(try run(RealmObject.load([route.note, route.link], in: route.environment)))
        let number = try Self.number(of: objects[route.note]) + 1
        var batch = WriteBatch(environment: route.environment)
        batch.expect(route.note, at: objects[route.note]?.position ?? 0, decision: 0)
        let note = Note(title: "Probe", body: String(number))
        batch.put(route.note, try CanonicalJSON(encoding: note), decision: 0, isEdit: true)
        if objects[route.link]?.fields == nil {
            let link = SharedItem(kind: .note, item: route.note.id, recipient: route.reader)
            batch.put(route.link, try CanonicalJSON(encoding: link), decision: 0, isEdit: true)
        }
        return try batch.commit(on: &self).conflicts.isEmpty ? number : nil
    }

    /// The number in the copy.
    mutating func receivedProbe(_ route: ProbeRoute) throws -> Int64 {
        let objects = try RealmObject.byKey(try run(RealmObject.load([route.copy], in: route.environment)))
        return try Self.number(of: objects[route.copy])
    }

    private static func number(of object: RealmObject?) throws -> Int64 {
        guard let fields = object?.fields else { return 0 }
        return Int64(try JSONDecoder().decode(Note.self, from: Data(fields.bytes)).body) ?? 0
    }
}
