import Access
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Where a probe's note is written, and where it is to come.
struct ProbeWay: Sendable {
    let environment: EnvironmentID
    let note: ObjectKey
    let link: ObjectKey
    let copy: ObjectKey
    /// The one it is shared with.
    let reader: UUID

    /// The two people of a probe; nobody logs in as one of them.
    static let people = [
        People.Claim(id: id(1), email: "probe-writer@fieldpost.invalid"),
        People.Claim(id: id(2), email: "probe-reader@fieldpost.invalid"),
    ]
    private static let noteID = id(3)

    private static func id(_ number: UInt8) -> UUID {
        UUID(uuid: (0xF1, 0xE1, 0xD9, number, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, number))
    }

    init(_ environment: EnvironmentID, realmOfWriter: Int32, realmOfShare: Int32) {
        self.environment = environment
        reader = Self.people[1].id
        note = ObjectKey(realm: realmOfWriter, kind: .note, id: Self.noteID)
        link = ObjectKey(realm: realmOfWriter, kind: .sharedItem, id: SharedItem.id(of: Self.noteID, with: reader))
        copy = ObjectKey(realm: realmOfShare, kind: .note, id: Self.noteID)
    }

    /// The realm of what the first shares with the second.
    static var share: RealmPath { .share(Share.id(of: people[0].id, with: people[1].id)) }
}

extension Connection {
    /// Lets the probe's people in, where they are not there yet.
    ///
    /// - Returns: `nil` when there is no such environment.
    mutating func makeProbeWay(through name: String) throws -> ProbeWay? {
        let rows = try run("SELECT id FROM realm.environment WHERE name = \(name)")
        guard let environment = try rows.first?.decode(EnvironmentID.self) else { return nil }
        if let problem = try People.claim(ProbeWay.people, in: environment, on: &self).compactMap(\.self).first {
            throw PostgresError(sqlState: nil, message: problem)
        }
        let people = ProbeWay.people.map { (id: $0.id, name: "Probe") }
        try People.add(people, in: environment, on: &self)
        let paths = try ProbeWay.people.compactMap(\.email).map { try RealmPath.user($0) }
        var directory = RealmDirectory()
        let realms = try directory.ids(of: paths + [ProbeWay.share], in: environment, create: true, on: &self)
        guard let writer = realms[paths[0]], let share = realms[ProbeWay.share] else { return nil }
        return ProbeWay(environment, realmOfWriter: writer, realmOfShare: share)
    }

    /// Writes the next number into the note, and shares it where it is not shared.
    ///
    /// - Returns: `nil` when another monitor has written meanwhile.
    mutating func sendProbe(_ way: ProbeWay) throws -> Int64? {
        let found = try RealmObject.byKey(try run(RealmObject.load([way.note, way.link], in: way.environment)))
        let number = try Self.number(of: found[way.note]) + 1
        var batch = WriteBatch(environment: way.environment)
        batch.expect(way.note, at: found[way.note]?.position ?? 0, decision: 0)
        let note = Note(title: "Probe", body: String(number))
        batch.put(way.note, try CanonicalJSON(encoding: note), decision: 0, isEdit: true)
        if found[way.link]?.fields == nil {
            let link = SharedItem(kind: .note, item: way.note.id, recipient: way.reader)
            batch.put(way.link, try CanonicalJSON(encoding: link), decision: 0, isEdit: true)
        }
        return try batch.commit(on: &self).missed.isEmpty ? number : nil
    }

    /// The number that the copy has.
    mutating func arrivedProbe(_ way: ProbeWay) throws -> Int64 {
        let found = try RealmObject.byKey(try run(RealmObject.load([way.copy], in: way.environment)))
        return try Self.number(of: found[way.copy])
    }

    private static func number(of object: RealmObject?) throws -> Int64 {
        guard let fields = object?.fields else { return 0 }
        return Int64(try JSONDecoder().decode(Note.self, from: Data(fields.bytes)).body) ?? 0
    }
}
