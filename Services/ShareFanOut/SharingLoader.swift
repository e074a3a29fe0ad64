import Access
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// What an input is about, as its subject tells it.
enum Concern: Equatable, Sendable {
    /// A person's item: all its links.
    case item(RealmPath, ObjectName)
    /// A person's link.
    case link(RealmPath, UUID)
    /// A copy that its recipient removed: its link.
    case removal(share: UUID, ObjectName)
    /// A share that one of the two may have ended: the links between them that are older.
    case end(UUID)

    struct ObjectName: Equatable, Sendable {
        let kind: Kind
        let id: UUID
    }

    /// - Parameter isEdit: A copy that this service itself wrote needs no further look. A share does: when it was made
    ///   again at once for a newer link, no other event tells that it was ended before.
    init?(_ subject: EventSubject, isEdit: Bool) {
        switch (subject.realm.realmClass, subject.kind) {
        case (.user, .appointment), (.user, .note):
            self = .item(subject.realm, ObjectName(kind: subject.kind, id: subject.id))
        case (.user, .sharedItem): self = .link(subject.realm, subject.id)
        case (.share(let share), .appointment) where isEdit, (.share(let share), .note) where isEdit:
            self = .removal(share: share, ObjectName(kind: subject.kind, id: subject.id))
        case (.share(let share), .share) where share == subject.id: self = .end(share)
        default: return nil
        }
    }

    /// Whose own realm it is in.
    var realm: RealmPath? {
        switch self {
        case .item(let realm, _), .link(let realm, _): realm
        case .removal, .end: nil
        }
    }

    /// The share whose realm it is in.
    var share: UUID? {
        switch self {
        case .item, .link: nil
        case .removal(let share, _), .end(let share): share
        }
    }
}

/// Reads what a batch concerns, in as many round trips as there are steps from an id to what it leads to.
struct SharingLoader {
    /// Links that are read for one batch; those of one item are always fewer.
    static let linkCountMax = 5_000
    /// Links of an ended share that are read for one batch.
    static let endedCountMax = 200

    let environment: EnvironmentID
    let statements: SharingStatements
    private let concerns: [Int: Concern]
    private(set) var directory: RealmDirectory
    private var state = SharingState()

    init(_ concerns: [Int: Concern], _ statements: SharingStatements, _ directory: RealmDirectory) {
        environment = statements.environment
        self.statements = statements
        self.concerns = concerns
        self.directory = directory
    }

    mutating func load(on connection: inout Connection) throws -> SharingState {
        try loadOwners(&connection)
        try loadLinks(&connection)
        try loadRealms(&connection)
        try loadObjects(&connection)
        try loadRoom(&connection)
        return state
    }

    private var ownersOfInputs: [Int: Owner] = [:]

    /// From the realms of inputs to the people whose items they are about.
    private mutating func loadOwners(_ connection: inout Connection) throws {
        let paths = Set(concerns.values.compactMap(\.realm))
        let shares = Array(Set(concerns.values.compactMap(\.share)))
        var people: [RealmPath: UUID] = [:]
        if !paths.isEmpty {
            for (email, id) in try People.objects(of: paths.compactMap(\.email), in: environment, on: &connection) {
                people[try .user(email)] = id
            }
        }
        var pathsOfShares: [UUID: RealmPath] = [:]
        if !shares.isEmpty {
            let rows = try connection.run(People.first(in: shares.map(Share.ids), in: environment))
            for (number, person, email) in try rows.decode(Int32.self, UUID.self, String.self) {
                let path = try RealmPath.user(email)
                people[path] = person
                pathsOfShares[shares[Int(number) - 1]] = path
            }
        }
        let realms = try directory.ids(of: Array(people.keys), in: environment, create: false, on: &connection)
        var owners: [RealmPath: Owner] = [:]
        for (path, person) in people { owners[path] = realms[path].map { Owner(person: person, realm: $0) } }
        state.itemRealms = realms
        for (share, path) in pathsOfShares { state.owners[share] = owners[path] }
        for (index, concern) in concerns {
            ownersOfInputs[index] = concern.realm.flatMap { owners[$0] } ?? concern.share.flatMap { state.owners[$0] }
        }
        let sharePaths = shares.map(RealmPath.share)
        let found = try directory.ids(of: sharePaths, in: environment, create: false, on: &connection)
        for (share, path) in zip(shares, sharePaths) { state.shareRealms[share] = found[path] }
    }

    /// From inputs to links; and of ended shares what tells who their recipients are.
    private mutating func loadLinks(_ connection: inout Connection) throws {
        var items: [(input: Int, owner: Owner, item: Concern.ObjectName)] = []
        var keys: [ObjectKey: Owner] = [:]
        var ends: [(input: Int, owner: Owner, key: ObjectKey)] = []
        for (index, concern) in concerns.sorted(by: { $0.key < $1.key }) {
            guard let owner = ownersOfInputs[index] else { continue }
            switch concern {
            case .item(_, let item): items.append((index, owner, item))
            case .link(_, let id): add(id, of: owner, to: &keys, for: index)
            case .removal(let share, let item):
                add(SharedItem.id(of: item.id, with: share), of: owner, to: &keys, for: index)
            case .end(let share): if let key = state.shareKey(share) { ends.append((index, owner, key)) }
            }
        }
        let ordered = Array(keys.keys)
        state.whole = Set(ordered)
        let known = ends.flatMap { [$0.key, ObjectKey(realm: $0.owner.realm, kind: .share, id: $0.key.id)] }
        let answers = try connection.run([
            statements.links(
                ofItems: items.map { ($0.owner.realm, $0.item.id) }, countMax: Self.linkCountMax),
            statements.links(ordered),
            statements.links(
                ofEnded: ends.map { ($0.owner.realm, $0.key) }, countMax: Self.endedCountMax),
            RealmObject.load(known, in: environment),
        ])
        try readItems(answers[0], items)
        for row in answers[1] {
            guard let object = try RealmObject(row, firstColumn: 1), let owner = keys[object.key] else { continue }
            state.links[object.key] = Link(owner, object.key, object, olderCount: Int(try row.value(0, as: Int32.self)))
        }
        for key in ordered where state.links[key] == nil { state.links[key] = keys[key].map { Link($0, key, nil) } }
        for row in answers[2] {
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            let end = ends[Int(try row.value(0, as: Int32.self)) - 1]
            state.whole.insert(object.key)
            state.inputs[end.input, default: []].append(object.key)
            if state.links[object.key] == nil { state.links[object.key] = Link(end.owner, object.key, object) }
        }
        let full = ends.map(\.input).filter { state.inputs[$0]?.count == Self.endedCountMax }
        state.unfinished.formUnion(full)
        state.objects = try RealmObject.byKey(answers[3])
    }

    private mutating func add(_ id: UUID, of owner: Owner, to keys: inout [ObjectKey: Owner], for input: Int) {
        let key = ObjectKey(realm: owner.realm, kind: .sharedItem, id: id)
        keys[key] = owner
        state.inputs[input] = [key]
    }

    /// What was cut off is read in another batch, from the first item that may lack something.
    private mutating func readItems(
        _ rows: Rows, _ items: [(input: Int, owner: Owner, item: Concern.ObjectName)]
    ) throws {
        var counts = [Int](repeating: 0, count: items.count)
        var last = items.count
        for row in rows {
            let number = Int(try row.value(0, as: Int32.self)) - 1
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            let (input, owner, item) = items[number]
            let link = Link(owner, object.key, object, olderCount: counts[number])
            counts[number] += 1
            if rows.count == Self.linkCountMax { last = number }
            // Another item's id may begin alike.
            guard let fields = link.fields, fields.item == item.id, fields.kind == item.kind else { continue }
            state.inputs[input, default: []].append(object.key)
            if state.links[object.key] == nil { state.links[object.key] = link }
        }
        for (input, _, _) in items[last...] { state.unfinished.insert(input) }
    }

    /// From links to the realms that they lead to.
    private mutating func loadRealms(_ connection: inout Connection) throws {
        var recipients = Set(state.links.values.compactMap { $0.fields?.recipient })
        for object in state.objects.values { recipients.formUnion(Self.recipient(of: object).map { [$0] } ?? []) }
        if !recipients.isEmpty {
            let rows = try connection.run(People.emails(of: recipients, in: environment))
            var paths: [UUID: RealmPath] = [:]
            for (person, email) in try rows.decode(UUID.self, String.self) { paths[person] = try .user(email) }
            let found = try directory.ids(of: Array(paths.values), in: environment, create: true, on: &connection)
            for (person, path) in paths { state.realms[person] = found[path] }
        }
        for isThere in [true, false] {
            let shares = Set(state.links.values.filter { isWanted($0) == isThere }.map(\.share))
            let paths = shares.map(RealmPath.share)
            let found = try directory.ids(of: paths, in: environment, create: isThere, on: &connection)
            for (share, path) in zip(shares, paths) where found[path] != nil { state.shareRealms[share] = found[path] }
        }
    }

    /// Whether there is somebody to have a copy: then it has a realm to be in.
    private func isWanted(_ link: Link) -> Bool {
        guard let recipient = link.fields?.recipient, recipient != link.owner.person else { return false }
        return state.realms[recipient] != nil
    }

    /// Whom a `Share` names as the recipient.
    static func recipient(of object: RealmObject) -> UUID? {
        guard object.key.kind == .share, let fields = object.fields else { return nil }
        return (try? JSONObject(fields.bytes))?.id(of: "recipient")
    }

    /// What links, items and shares are now, and the copies that there are.
    private mutating func loadObjects(_ connection: inout Connection) throws {
        var keys = Set(state.objects.keys)
        var ranges: [(realm: Int32, id: UUID)] = []
        var linksOfRanges: [ObjectKey] = []
        for (key, link) in state.links {
            if let item = link.itemKey { keys.insert(item) }
            if let copy = state.copyKey(link) { keys.insert(copy) }
            guard let share = state.shareKey(link.share) else { continue }
            keys.insert(share)
            guard state.whole.contains(key) else { continue }
            ranges.append((share.realm, key.id))
            linksOfRanges.append(key)
            if let fields = link.fields {
                keys.formUnion(state.references(to: link.share, of: link.owner, with: fields.recipient))
            }
        }
        for (index, concern) in concerns {
            guard let owner = ownersOfInputs[index] else { continue }
            switch concern {
            case .item(_, let item): keys.insert(ObjectKey(realm: owner.realm, kind: item.kind, id: item.id))
            case .removal(let share, let item):
                guard let realm = state.shareRealms[share] else { continue }
                keys.insert(ObjectKey(realm: realm, kind: item.kind, id: item.id))
            case .end(let share):
                keys.insert(ObjectKey(realm: owner.realm, kind: .share, id: share))
                guard let recipient = endedRecipient(share, of: owner) else { continue }
                keys.formUnion(state.references(to: share, of: owner, with: recipient))
            case .link: break
            }
        }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), statements.copies(ranges),
        ])
        state.objects = try RealmObject.byKey(answers[0])
        for row in answers[1] {
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            state.copies[linksOfRanges[Int(try row.value(0, as: Int32.self)) - 1], default: []].append(object)
        }
        for (key, link) in state.links where !state.whole.contains(key) {
            guard let copy = state.copyKey(link).flatMap({ state.objects[$0] }), !copy.isDeleted else { continue }
            state.copies[key] = [copy]
        }
    }

    private func endedRecipient(_ share: UUID, of owner: Owner) -> UUID? {
        let keys = [state.shareKey(share), ObjectKey(realm: owner.realm, kind: .share, id: share)]
        return keys.lazy.compactMap { $0.flatMap { state.objects[$0] }.flatMap(Self.recipient) }.first { _ in true }
    }

    /// How many shares those have for whom one is to be made, and what refers to it already.
    private mutating func loadRoom(_ connection: inout Connection) throws {
        var realms: Set<Int32> = []
        var references: Set<ObjectKey> = []
        for link in state.links.values {
            guard let fields = link.fields, let recipient = state.realms[fields.recipient],
                let share = state.shareKey(link.share), state.objects[share]?.fields == nil
            else { continue }
            realms.formUnion([link.owner.realm, recipient])
            references.formUnion(state.references(to: link.share, of: link.owner, with: fields.recipient))
        }
        guard !realms.isEmpty else { return }
        let answers = try connection.run([
            statements.shareCounts(Array(realms)), RealmObject.load(references, in: environment),
        ])
        for (realm, count) in try answers[0].decode(Int32.self, Int32.self) { state.shareCounts[realm] = Int(count) }
        state.objects.merge(try RealmObject.byKey(answers[1])) { _, new in new }
    }
}
