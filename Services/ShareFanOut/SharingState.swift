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

/// A `SharedItem`, or where one was.
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
    /// `nil`: there never was one, or its tombstone is gone too.
    let object: RealmObject?
    /// `nil` when it is not there.
    let fields: Fields?
    let olderCount: Int

    /// The share that its copy is in: the id tells it also when the link is gone.
    var share: UUID { Share.id(of: owner.person, with: key.id) }

    init(_ owner: Owner, _ key: ObjectKey, _ object: RealmObject?, olderCount: Int = 0) {
        self.owner = owner
        self.key = key
        self.object = object
        self.olderCount = olderCount
        fields = object?.fields.flatMap(Fields.init)
    }

    /// The item that it names.
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

    init?(_ kind: Kind) { self.init(rawValue: kind.rawValue) }
}

/// All that a batch is decided from.
struct SharingState: Sendable {
    /// The links that each input is about, by the input's index.
    var inputs: [Int: [ObjectKey]] = [:]
    /// Inputs with more links than were read.
    var unfinished: Set<Int> = []
    /// The owners that shares' ids begin with.
    var owners: [UUID: Owner] = [:]
    /// The realms that items are in.
    var itemRealms: [RealmPath: Int32] = [:]
    var links: [ObjectKey: Link] = [:]
    /// Those among them that an input itself is about, or a removal or an end: all that they lead to is looked at. Of
    /// the links of an item that changed, only the share and the copy.
    var whole: Set<ObjectKey> = []
    /// The own realms of those people that have any.
    var realms: [UUID: Int32] = [:]
    /// The realms of shares; one in which nothing was written has none.
    var shareRealms: [UUID: Int32] = [:]
    var objects: [ObjectKey: RealmObject] = [:]
    /// The copies that there are under the items' ids that a link may name, by link.
    var copies: [ObjectKey: [RealmObject]] = [:]
    /// How many shares a realm refers to, where that was asked.
    var shareCounts: [Int32: Int] = [:]

    func position(_ key: ObjectKey) -> Int64 { objects[key]?.position ?? 0 }

    func shareKey(_ share: UUID) -> ObjectKey? {
        shareRealms[share].map { ObjectKey(realm: $0, kind: .share, id: share) }
    }

    /// The references to a share in both people's own realms.
    func references(to share: UUID, of owner: Owner, with recipient: UUID) -> [ObjectKey] {
        ([owner.realm] + (realms[recipient].map { [$0] } ?? [])).map { ObjectKey(realm: $0, kind: .share, id: share) }
    }

    /// Whether the link's share is there, and both refer to it.
    func hasShare(_ link: Link, with recipient: UUID) -> Bool {
        guard let key = shareKey(link.share), let fields = objects[key]?.fields else { return false }
        guard whole.contains(link.key) else { return true }
        return references(to: link.share, of: link.owner, with: recipient).allSatisfy { objects[$0]?.fields == fields }
    }

    /// The copy that a link's recipient has, or is to have.
    func copyKey(_ link: Link) -> ObjectKey? {
        guard let fields = link.fields, let realm = shareRealms[link.share] else { return nil }
        return ObjectKey(realm: realm, kind: fields.kind, id: fields.item)
    }

    /// What the rule about a link is asked with; `nil` when the link is not there.
    ///
    /// - Parameter room: Whether there is a share, or may be one.
    func facts(_ link: Link, room: LinkRule.Room) -> LinkRule.Facts? {
        guard let object = link.object, let fields = link.fields, let itemKey = link.itemKey else { return nil }
        var facts = LinkRule.Facts(madeAt: object.editPosition, olderCount: link.olderCount, room: room)
        switch objects[itemKey] {
        case nil: facts.item = .absent
        case let item?: facts.item = item.isDeleted ? .deleted(at: item.position) : .there
        }
        if realms[fields.recipient] == nil { facts.recipient = .unknown }
        if fields.recipient == link.owner.person { facts.recipient = .oneself }
        facts.removedAt = copyKey(link).flatMap { objects[$0]?.editPosition } ?? 0
        facts.endedAt = shareKey(link.share).flatMap { objects[$0]?.editPosition } ?? 0
        return facts
    }
}
