import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

@testable import RealmGateway

/// The phones of an environment's people: each has a copy of its realm, and edits that copy.
struct Phones: ~Copyable {
    private struct Phone {
        let realm: Int32
        /// The choices for entries.
        let data: ReportingData
        var copy: [ObjectKey: RealmObject] = [:]
        var position: Int64 = 0
        var made: Set<UUID> = []
        /// Every entry that it ever displayed.
        var seen: Set<UUID> = []
        /// Entries whose deletion its person requested.
        var deleted: Set<UUID> = []
        /// Of these, entries that were removed immediately, since no back end can have them.
        var dropped: Set<UUID> = []
    }

    static let entriesMax = 25
    private var connection: Connection
    private let environment: EnvironmentID
    private let today: Day
    private let references: [[String: String]]
    private let entryLog: EntryTimeline
    private var phones: [Phone] = []

    init(
        _ conninfo: String, in environment: EnvironmentID, today: Day, references: [[String: String]],
        _ entryLog: EntryTimeline
    ) throws {
        connection = try Connection(conninfo)
        self.environment = environment
        self.today = today
        self.references = references
        self.entryLog = entryLog
    }

    mutating func add(realm: Int32, _ data: ReportingData) { phones.append(Phone(realm: realm, data: data)) }

    var madeCount: Int { phones.reduce(0) { $0 + $1.made.count } }

    /// Applies the changes since the last call, as the gateway's feed delivers them.
    mutating func sync(_ index: Int) throws {
        let (realm, since) = (phones[index].realm, phones[index].position)
        let counter = try EnvironmentCounter(try connection.run(EnvironmentCounter.load(environment))[0])
        var last: (kind: Kind, id: UUID)?
        while true {
            let page = try connection.run(
                Feed.page(
                    of: realm, in: environment, after: last, changedAfter: since, includingTombstones: true,
                    countMax: 100))
            for row in page {
                guard let object = try RealmObject(row) else { continue }
                phones[index].copy[object.key] = object.isDeleted ? nil : object
                if object.key.kind == .timeEntry, !object.isDeleted { phones[index].seen.insert(object.key.id) }
                last = (object.key.kind, object.key.id)
            }
            if page.count < 100 { break }
        }
        phones[index].position = counter.position
    }

    func data(_ index: Int) -> ReportingData { phones[index].data }

    /// The entries that a phone displays.
    func copy(_ index: Int) -> [ObjectKey: RealmObject] { phones[index].copy }

    /// The expected result of all entries that a person ever had.
    func fates(_ index: Int) -> Fates {
        let phone = phones[index]
        return Fates(had: phone.made.union(phone.seen), deleted: phone.deleted, dropped: phone.dropped)
    }

    // MARK: Actions

    /// A person edits or creates an entry.
    mutating func act(_ index: Int, _ random: inout SplitMix64) throws {
        let phone = phones[index]
        let keys = phone.copy.keys.filter { $0.kind == .timeEntry }.sorted { $0.id.text < $1.id.text }
        if phone.made.count < Self.entriesMax, keys.isEmpty || random.happens(12) {
            return try write(.put, random.id(), index, try new(phone, &random))
        }
        guard let key = keys.randomElement(using: &random),
            let entry = try phone.copy[key]?.decoded(as: TimeEntry.self, by: JSONDecoder())
        else { return }
        switch Int.random(in: 0..<20, using: &random) {
        case 0: try write(.delete, key.id, index, nil)
        case 1..<7: try write(.patch, key.id, index, #"{"submitRequested": true}"#)
        case 7: try write(.patch, key.id, index, #"{"submitRequested": false}"#)
        case 8: try write(.patch, key.id, index, #"{"submitRequested": false, "text": "offline"}"#)
        case 9:
            // An outdated draft: the phone has not received the submission.
            var draft = entry
            (draft.submitRequested, draft.deleteRequested, draft.backendId) = (nil, nil, nil)
            (draft.text, draft.status) = ("old draft", .draft)
            let fields = try JSONObject([UInt8](try JSONEncoder().encode(draft)))
            let own = fields.members.filter { !["status", "statusAt"].contains($0.key) }.map { member in
                #""\#(member.key)":"# + String(decoding: fields.bytes[member.value], as: UTF8.self)
            }
            try write(.put, key.id, index, "{" + own.joined(separator: ",") + "}")
        default: try write(.patch, key.id, index, try edit(entry, phone, &random))
        }
    }

    private func new(_ phone: Phone, _ random: inout SplitMix64) throws -> String {
        let entry = TimeEntry(
            text: "work", reportingTemplate: phone.data.templates.first?.id, reporting: selections(phone, &random),
            entryDate: day(&random), durationSeconds: 900 * Int.random(in: 1...32, using: &random),
            submitRequested: random.happens(50) ? true : nil)
        return String(decoding: try JSONEncoder().encode(entry), as: UTF8.self)
    }

    /// Submits an edited entry, unless it was never submitted; often without an explicit status.
    private func edit(_ entry: TimeEntry, _ phone: Phone, _ random: inout SplitMix64) throws -> String {
        let isDraft = entry.status == .draft && entry.backendId == nil
        let submits = isDraft || random.happens(30) ? "" : #", "submitRequested": true"#
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<3: return #"{"durationSeconds": \#(900 * Int.random(in: 1...32, using: &random))\#(submits)}"#
        case 3: return #"{"durationSeconds": 0\#(submits)}"#
        case 4, 5: return #"{"text": "text \#(random.next() % 100)"\#(submits)}"#
        case 6: return #"{"entryDate": "\#(day(&random))"\#(submits)}"#
        default:
            let reporting = try JSONEncoder().encode(selections(phone, &random))
            return #"{"reporting": \#(String(decoding: reporting, as: UTF8.self))\#(submits)}"#
        }
    }

    private func selections(_ phone: Phone, _ random: inout SplitMix64) -> [ReportingSelection] {
        phone.data.selections(for: references[Int.random(in: 0..<references.count, using: &random)])
    }

    private func day(_ random: inout SplitMix64) -> Day { today.adding(days: -Int.random(in: 1...6, using: &random)) }

    /// As the gateway: the rules decide from the realm's current state.
    private mutating func write(
        _ operation: Mutation.Operation, _ id: UUID, _ index: Int, _ fields: String?
    ) throws {
        let key = ObjectKey(realm: phones[index].realm, kind: .timeEntry, id: id)
        let now = try RealmObject.byKey(try connection.run(RealmObject.load([key], in: environment)))[key]
        let stored = now.map { $0.fields.map { .live(fields: $0.bytes) } ?? StoredObject.tombstone }
        let change: MutationChange
        do throws(MutationProblem) {
            change = try MutationRules.decide(
                Mutation(operation: operation, kind: .timeEntry, id: id, fields: fields.map { Array($0.utf8) }),
                current: stored)
        } catch {
            entryLog.record(id) { "phone: \(operation) \(fields ?? "") -> \(error)" }
            return
        }
        entryLog.record(id) { "phone: \(operation) \(fields ?? "") -> \(change.name)" }
        var batch = WriteBatch(environment: environment)
        var after = now?.fields?.bytes
        switch change {
        case .insert(let fields): after = fields
        case .merge(let fields): after = try after.map { try JSONObject($0).merging(try JSONObject(fields)) }
        case .requestDeletion:
            let request = try JSONObject(Array(#"{"deleteRequested":true}"#.utf8))
            after = try after.map { try JSONObject($0).merging(request) }
        case .tombstone:
            batch.delete(key, decision: 0, isEdit: true)
            let lines = RealmObject.statusLines(of: [id], realms: [key.realm], in: environment)
            for row in try connection.run(lines) {
                batch.delete(try RealmObject.statusLine(row).line, decision: 0)
            }
            after = nil
        case .unchanged: return
        }
        if let after {
            var fields = after
            let line = try EntryLog.line(of: id, before: now?.fields?.bytes, after: after, now: Timestamp.now())
            if let line {
                fields = try JSONObject(after).merging(try JSONObject(EntryLog.fields(with: line)))
                let key = ObjectKey(realm: key.realm, kind: .timeEntryStatus, id: UUID())
                batch.put(key, try CanonicalJSON(encoding: line), decision: 0)
            }
            batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true)
        }
        _ = try batch.commit(on: &connection)
        record(change, id, index)
    }

    private mutating func record(_ change: MutationChange, _ id: UUID, _ index: Int) {
        switch change {
        case .insert: phones[index].made.insert(id)
        case .requestDeletion: phones[index].deleted.insert(id)
        case .tombstone:
            phones[index].deleted.insert(id)
            phones[index].dropped.insert(id)
        case .merge, .unchanged: break
        }
    }
}

/// The people's changes to a realm's entries.
struct Fates {
    /// All entries ever created there, or displayed.
    var had: Set<UUID>
    /// Entries that may be missing: they, or their record, were deleted.
    var deleted: Set<UUID>
    /// Of these, entries that must be missing.
    var dropped: Set<UUID>
}

extension MutationChange {
    fileprivate var name: String {
        switch self {
        case .insert: "insert"
        case .merge: "merge"
        case .requestDeletion: "requestDeletion"
        case .tombstone: "tombstone"
        case .unchanged: "unchanged"
        }
    }
}
