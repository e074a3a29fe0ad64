import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A person whose items are shared.
struct Owner: Hashable, Sendable {
    let person: UUID
    /// The number of their own realm.
    let realm: Int32
}

/// A `SharedItem`, existing or deleted.
struct Link: Sendable {
    struct Fields: Equatable, Sendable {
        let kind: Kind
        let item: UUID
        let recipient: UUID
        let since: Timestamp?
        let problem: String?
    }

    let owner: Owner
    let key: ObjectKey
    /// `nil`: it never existed, or its tombstone was compacted.
    let object: RealmObject?
    /// `nil` if it is deleted.
    let fields: Fields?
    let olderCount: Int

    /// The share of its copy. The id suffices if the link is deleted.
    var share: UUID { Share.id(of: owner.person, with: key.id) }

    init(_ owner: Owner, _ key: ObjectKey, _ object: RealmObject?, olderCount: Int = 0) {
        self.owner = owner
        self.key = key
        self.object = object
        self.olderCount = olderCount
        fields = object?.fields.flatMap(Fields.init)
    }

    /// The link's item.
    var itemKey: ObjectKey? { fields.map { ObjectKey(realm: owner.realm, kind: $0.kind, id: $0.item) } }
}

extension Link.Fields {
    init?(_ json: CanonicalJSON) {
        guard let object = try? JSONObject(json.bytes), let name = object.text(of: "kind"),
            let kind = SharedItem.ItemKind(rawValue: name), let item = object.id(of: "item"),
            let recipient = object.id(of: "recipient")
        else { return nil }
        self.kind = kind.kind
        self.item = item
        self.recipient = recipient
        since = object.text(of: "since").flatMap { Timestamp($0) }
        problem = object.text(of: "problem")
    }
}

extension SharedItem.ItemKind {
    /// The kind of the item.
    var kind: Kind {
        switch self {
        case .appointment: .appointment
        case .note: .note
        }
    }
}

/// The `DeletedObject`s of an item's links that ended because the item was deleted.
struct EndedLinks: Sendable {
    let owner: Owner
    var records: [RealmObject] = []

    /// The share of a record's link, whose id the record has.
    func share(_ record: RealmObject) -> UUID { Share.id(of: owner.person, with: record.key.id) }
}

/// The state that a batch is processed from.
struct SharingState: Sendable {
    /// The links that each input concerns, by the input's index.
    var inputs: [Int: [ObjectKey]] = [:]
    /// Inputs with more links than were read.
    var incompleteInputs: Set<Int> = []
    /// The owners whose ids the shares' ids begin with.
    var owners: [UUID: Owner] = [:]
    /// The realms of items.
    var itemRealms: [RealmPath: Int32] = [:]
    var links: [ObjectKey: Link] = [:]
    /// Links that an input, a removal or an end concerns directly: all related objects are checked. Of the other links
    /// of a changed item, only the share and the copy are.
    var directLinks: Set<ObjectKey> = []
    /// The own realms of people who have one.
    var realms: [UUID: Int32] = [:]
    /// The realms of shares; without any write there is no realm.
    var shareRealms: [UUID: Int32] = [:]
    var objects: [ObjectKey: RealmObject] = [:]
    /// Existing copies under the item ids that a link may name, by link.
    var copies: [ObjectKey: [RealmObject]] = [:]
    /// The links that ended with their item, by the index of the item's input.
    var endedLinks: [Int: EndedLinks] = [:]
    /// The realm of the people's `Person` objects.
    var commonRealm: Int32?
    /// Number of shares of a realm, where loaded.
    var shareCounts: [Int32: Int] = [:]

    func position(_ key: ObjectKey) -> Int64 { objects[key]?.position ?? 0 }

    func shareKey(_ share: UUID) -> ObjectKey? {
        shareRealms[share].map { ObjectKey(realm: $0, kind: .share, id: share) }
    }

    /// Returns the references to a share in both people's own realms.
    func references(to share: UUID, of owner: Owner, with recipient: UUID) -> [ObjectKey] {
        ([owner.realm] + (realms[recipient].map { [$0] } ?? [])).map { ObjectKey(realm: $0, kind: .share, id: share) }
    }

    /// The recipient of a share, from its object or from the copy in the owner's own realm, which outlives it.
    func recipient(of share: UUID, owner: Owner) -> UUID? {
        let keys = [shareKey(share), ObjectKey(realm: owner.realm, kind: .share, id: share)]
        return keys.lazy.compactMap { $0.flatMap { objects[$0] }.flatMap(SharingLoader.recipient) }.first { _ in true }
    }

    /// The person who ended a share, as the gateway recorded it in the copy of that person's own realm.
    func ender(_ share: UUID, of owner: Owner, with recipient: UUID) -> LinkRule.Ender {
        let enders = references(to: share, of: owner, with: recipient).compactMap { key in
            objects[key]?.fields.flatMap { try? JSONObject($0.bytes) }?.id(of: "endedBy")
        }
        return enders.contains(owner.person) ? .owner : enders.contains(recipient) ? .recipient : .unknown
    }

    /// A person's display name; `nil` if they have none.
    func name(of person: UUID) -> String? {
        guard let commonRealm,
            let fields = objects[ObjectKey(realm: commonRealm, kind: .person, id: person)]?.fields,
            let name = (try? JSONObject(fields.bytes))?.text(of: "name")
        else { return nil }
        return name.isEmpty ? nil : name
    }

    /// Whether the link's share exists with both references.
    func hasShare(_ link: Link, with recipient: UUID) -> Bool {
        guard let key = shareKey(link.share), let fields = objects[key]?.fields else { return false }
        guard directLinks.contains(link.key) else { return true }
        return references(to: link.share, of: link.owner, with: recipient).allSatisfy { objects[$0]?.fields == fields }
    }

    /// The existing or expected copy of a link.
    func copyKey(_ link: Link) -> ObjectKey? {
        guard let fields = link.fields, let realm = shareRealms[link.share] else { return nil }
        return ObjectKey(realm: realm, kind: fields.kind, id: fields.item)
    }

    /// Returns the facts of a link for the rule; `nil` if the link does not exist.
    ///
    /// - Parameter capacity: Whether the share exists or can be created.
    func facts(_ link: Link, capacity: LinkRule.Capacity) -> LinkRule.Facts? {
        guard let object = link.object, let fields = link.fields, let itemKey = link.itemKey else { return nil }
        var facts = LinkRule.Facts(writtenAt: object.editPosition, olderCount: link.olderCount, capacity: capacity)
        switch objects[itemKey] {
        case nil: facts.item = .absent
        case let item?: facts.item = item.isDeleted ? .deleted(at: item.position) : .present
        }
        if realms[fields.recipient] == nil { facts.recipient = .unknown }
        if fields.recipient == link.owner.person { facts.recipient = .oneself }
        facts.removedAt = copyKey(link).flatMap { objects[$0]?.editPosition } ?? 0
        facts.endedAt = shareKey(link.share).flatMap { objects[$0]?.editPosition } ?? 0
        if facts.endedAt > 0 { facts.ender = ender(link.share, of: link.owner, with: fields.recipient) }
        return facts
    }
}
