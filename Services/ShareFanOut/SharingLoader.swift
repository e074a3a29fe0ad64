import Access
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The links that an input concerns, derived from its subject.
enum InputScope: Equatable, Sendable {
    /// All links of a person's item.
    case item(RealmPath, ObjectName)
    /// One link of a person.
    case link(RealmPath, UUID)
    /// The link of a copy that its recipient removed.
    case removal(share: UUID, ObjectName)
    /// The older links of a share that either person may have ended.
    case end(UUID)

    struct ObjectName: Equatable, Sendable {
        let kind: Kind
        let id: UUID
    }

    /// - Parameter isEdit: Whether a person wrote the object. A copy written by this service needs no processing. A
    ///   share does: if it is recreated immediately for a newer link, no other event reports its end.
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

    /// The own realm of the input's person.
    var realm: RealmPath? {
        switch self {
        case .item(let realm, _), .link(let realm, _): realm
        case .removal, .end: nil
        }
    }

    /// The share of the input's realm.
    var share: UUID? {
        switch self {
        case .item, .link: nil
        case .removal(let share, _), .end(let share): share
        }
    }
}

/// Loads the state of a batch, in one round trip for each step from ids to related objects.
struct SharingLoader {
    /// Limit on links read for one batch; above the limit of one item.
    static let linkCountMax = 5_000
    /// Limit on links of an ended share read for one batch.
    static let endedCountMax = 200
    /// Limit on links of one restored item read for one batch; of all items, `linkCountMax` are read.
    static let restoredCountMax = 200

    let environment: EnvironmentID
    let statements: SharingStatements
    private let scopes: [Int: InputScope]
    private(set) var directory: RealmDirectory
    private var state = SharingState()

    init(_ scopes: [Int: InputScope], _ statements: SharingStatements, _ directory: RealmDirectory) {
        environment = statements.environment
        self.statements = statements
        self.scopes = scopes
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

    /// Loads the owners of the inputs' items by the inputs' realms.
    private mutating func loadOwners(_ connection: inout Connection) throws {
        let paths = Set(scopes.values.compactMap(\.realm))
        let shares = Array(Set(scopes.values.compactMap(\.share)))
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
        for (index, scope) in scopes {
            ownersOfInputs[index] = scope.realm.flatMap { owners[$0] } ?? scope.share.flatMap { state.owners[$0] }
        }
        let sharePaths = shares.map(RealmPath.share)
        let results = try directory.ids(of: sharePaths, in: environment, create: false, on: &connection)
        for (share, path) in zip(shares, sharePaths) { state.shareRealms[share] = results[path] }
    }

    /// Loads the links of inputs, and for ended shares the objects that identify their recipients.
    private mutating func loadLinks(_ connection: inout Connection) throws {
        var items: [(input: Int, owner: Owner, item: InputScope.ObjectName)] = []
        var keys: [ObjectKey: Owner] = [:]
        var ends: [(input: Int, owner: Owner, key: ObjectKey)] = []
        for (index, scope) in scopes.sorted(by: { $0.key < $1.key }) {
            guard let owner = ownersOfInputs[index] else { continue }
            switch scope {
            case .item(_, let item): items.append((index, owner, item))
            case .link(_, let id): add(id, of: owner, to: &keys, for: index)
            case .removal(let share, let item):
                add(SharedItem.id(of: item.id, with: share), of: owner, to: &keys, for: index)
            case .end(let share): if let key = state.shareKey(share) { ends.append((index, owner, key)) }
            }
        }
        let ordered = Array(keys.keys)
        state.directLinks = Set(ordered)
        let endKeys = ends.flatMap { [$0.key, ObjectKey(realm: $0.owner.realm, kind: .share, id: $0.key.id)] }
        // A deleted link does not have its recipient; its share's copy in the owner's realm does.
        let ownKeys = keys.map { key, owner in
            ObjectKey(realm: owner.realm, kind: .share, id: Share.id(of: owner.person, with: key.id))
        }
        let results = try connection.run([
            statements.links(ofItems: items.map { ($0.owner.realm, $0.item.id) }, countMax: Self.linkCountMax),
            statements.links(ordered),
            statements.links(ofEnded: ends.map { ($0.owner.realm, $0.key) }, countMax: Self.endedCountMax),
            RealmObject.load(Set(endKeys + ownKeys), in: environment),
            statements.endedLinks(
                ofItems: items.map { ($0.owner.realm, $0.item.id) }, itemCountMax: Self.restoredCountMax,
                countMax: Self.linkCountMax),
        ])
        try readItems(results[0], items)
        try readEndedLinks(results[4], items)
        for row in results[1] {
            guard let object = try RealmObject(row, firstColumn: 1), let owner = keys[object.key] else { continue }
            state.links[object.key] = Link(owner, object.key, object, olderCount: Int(try row.value(0, as: Int32.self)))
        }
        for key in ordered where state.links[key] == nil { state.links[key] = keys[key].map { Link($0, key, nil) } }
        for row in results[2] {
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            let end = ends[Int(try row.value(0, as: Int32.self)) - 1]
            state.directLinks.insert(object.key)
            state.inputs[end.input, default: []].append(object.key)
            if state.links[object.key] == nil { state.links[object.key] = Link(end.owner, object.key, object) }
        }
        let full = ends.map(\.input).filter { state.inputs[$0]?.count == Self.endedCountMax }
        state.incompleteInputs.formUnion(full)
        state.objects = try RealmObject.byKey(results[3])
    }

    private mutating func add(_ id: UUID, of owner: Owner, to keys: inout [ObjectKey: Owner], for input: Int) {
        let key = ObjectKey(realm: owner.realm, kind: .sharedItem, id: id)
        keys[key] = owner
        state.inputs[input] = [key]
    }

    /// Reads the links of items. Items after the row limit, and the last one before it, are processed in another batch.
    private mutating func readItems(
        _ rows: Rows, _ items: [(input: Int, owner: Owner, item: InputScope.ObjectName)]
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
            // Another item's id may have the same first bytes.
            guard let fields = link.fields, fields.item == item.id, fields.kind == item.kind else { continue }
            state.inputs[input, default: []].append(object.key)
            if state.links[object.key] == nil { state.links[object.key] = link }
        }
        for (input, _, _) in items[last...] { state.incompleteInputs.insert(input) }
    }

    /// Reads the links that ended with their items. Items after the row limit, and the last one before it, are
    /// processed in another batch.
    private mutating func readEndedLinks(
        _ rows: Rows, _ items: [(input: Int, owner: Owner, item: InputScope.ObjectName)]
    ) throws {
        var last = items.count
        for row in rows {
            let number = Int(try row.value(0, as: Int32.self)) - 1
            if rows.count == Self.linkCountMax { last = number }
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            let (input, owner, _) = items[number]
            state.endedLinks[input, default: EndedLinks(owner: owner)].records.append(object)
        }
        for (input, _, _) in items[last...] { state.incompleteInputs.insert(input) }
    }

    /// Loads the realms that links refer to.
    private mutating func loadRealms(_ connection: inout Connection) throws {
        var recipients = Set(state.links.values.compactMap { $0.fields?.recipient })
        for object in state.objects.values { recipients.formUnion(Self.recipient(of: object).map { [$0] } ?? []) }
        if !recipients.isEmpty {
            let rows = try connection.run(People.emails(of: recipients, in: environment))
            var paths: [UUID: RealmPath] = [:]
            for (person, email) in try rows.decode(UUID.self, String.self) { paths[person] = try .user(email) }
            let results = try directory.ids(of: Array(paths.values), in: environment, create: true, on: &connection)
            for (person, path) in paths { state.realms[person] = results[path] }
        }
        state.commonRealm = try directory.id(of: .common, in: environment, create: false, on: &connection)
        for isNeeded in [true, false] {
            var shares = Set(state.links.values.filter { needsCopy($0) == isNeeded }.map(\.share))
            if !isNeeded { shares.formUnion(sharesOfEndedLinks) }
            let paths = shares.map(RealmPath.share)
            let results = try directory.ids(of: paths, in: environment, create: isNeeded, on: &connection)
            for (share, path) in zip(shares, paths) where results[path] != nil {
                state.shareRealms[share] = results[path]
            }
        }
    }

    /// The shares of links that may be restored.
    private var sharesOfEndedLinks: [UUID] {
        state.endedLinks.values.flatMap { links in links.records.map(links.share) }
    }

    /// Whether a recipient exists who gets a copy: then the share's realm is created.
    private func needsCopy(_ link: Link) -> Bool {
        guard let recipient = link.fields?.recipient, recipient != link.owner.person else { return false }
        return state.realms[recipient] != nil
    }

    /// Returns the recipient of a `Share`.
    static func recipient(of object: RealmObject) -> UUID? {
        guard object.key.kind == .share, let fields = object.fields else { return nil }
        return (try? JSONObject(fields.bytes))?.id(of: "recipient")
    }

    /// Loads the current links, items and shares, and the existing copies.
    private mutating func loadObjects(_ connection: inout Connection) throws {
        var keys = Set(state.objects.keys)
        var ranges: [(realm: Int32, id: UUID)] = []
        var linksOfRanges: [ObjectKey] = []
        for (key, link) in state.links {
            if let item = link.itemKey { keys.insert(item) }
            if let copy = state.copyKey(link) { keys.insert(copy) }
            guard let share = state.shareKey(link.share) else { continue }
            keys.insert(share)
            guard state.directLinks.contains(key) else { continue }
            ranges.append((share.realm, key.id))
            linksOfRanges.append(key)
            if let fields = link.fields {
                keys.formUnion(state.references(to: link.share, of: link.owner, with: fields.recipient))
            }
        }
        for (index, scope) in scopes {
            guard let owner = ownersOfInputs[index] else { continue }
            switch scope {
            case .item(_, let item): keys.insert(ObjectKey(realm: owner.realm, kind: item.kind, id: item.id))
            case .removal(let share, let item):
                guard let realm = state.shareRealms[share] else { continue }
                keys.insert(ObjectKey(realm: realm, kind: item.kind, id: item.id))
            case .end(let share):
                keys.insert(ObjectKey(realm: owner.realm, kind: .share, id: share))
                guard let recipient = state.recipient(of: share, owner: owner) else { continue }
                keys.formUnion(state.references(to: share, of: owner, with: recipient))
            case .link: break
            }
        }
        for record in state.endedLinks.values.flatMap(\.records) {
            keys.insert(ObjectKey(realm: record.key.realm, kind: .sharedItem, id: record.key.id))
        }
        keys.formUnion(sharesOfEndedLinks.compactMap(state.shareKey))
        if let common = state.commonRealm {
            keys.formUnion(ownersOfInputs.values.map { ObjectKey(realm: common, kind: .person, id: $0.person) })
        }
        let results = try connection.run([
            RealmObject.load(keys, in: environment), statements.copies(ranges),
        ])
        state.objects = try RealmObject.byKey(results[0])
        for row in results[1] {
            guard let object = try RealmObject(row, firstColumn: 1) else { continue }
            state.copies[linksOfRanges[Int(try row.value(0, as: Int32.self)) - 1], default: []].append(object)
        }
        for (key, link) in state.links where !state.directLinks.contains(key) {
            guard let copy = state.copyKey(link).flatMap({ state.objects[$0] }), !copy.isDeleted else { continue }
            state.copies[key] = [copy]
        }
    }

    /// Loads the numbers of shares of people who need a new one, and existing references to it.
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
        let results = try connection.run([
            statements.shareCounts(Array(realms)), RealmObject.load(references, in: environment),
        ])
        for (realm, count) in try results[0].decode(Int32.self, Int32.self) { state.shareCounts[realm] = Int(count) }
        state.objects.merge(try RealmObject.byKey(results[1])) { _, new in new }
    }
}
