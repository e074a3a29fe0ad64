import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The history of shares, and the links that return with a restored item. All of it is written in the transaction that
/// creates or removes the copy or the link, so that it is written once.
extension SharingPlan {
    /// Writes the owner's `DeletedObject` of a link that the service deletes, and the recipient's `EndedShare` and
    /// `Notice` about a removed copy. For a new copy, writes the recipient's `Notice`, and removes the `EndedShare` of
    /// an item that is shared again.
    mutating func recordHistory(
        of link: Link, _ copies: [RealmObject], _ verdict: LinkRule.Verdict, _ input: Int
    ) throws {
        let recipient = link.fields?.recipient ?? state.recipient(of: link.share, owner: link.owner)
        let realm = recipient.flatMap { state.realms[$0] }
        guard let reason = SharingHistory.reason(of: verdict) else {
            if verdict == .shared, let realm { try recordBegin(of: link, in: realm, input) }
            return
        }
        if let stored = link.object?.fields, let fields = try? JSONObject(stored.bytes).decoded(as: SharedItem.self) {
            let deleted = DeletedObject(fields, deletedAt: now, reason: reason)
            let key = ObjectKey(realm: link.owner.realm, kind: .deletedObject, id: link.key.id)
            batch.put(key, try CanonicalJSON(encoding: deleted), decision: input)
        }
        // A copy without any link was never shared.
        guard let realm, link.object != nil else { return }
        for copy in copies {
            guard let fields = copy.fields,
                let line = SharingHistory.line(
                    owner: link.owner.person, copy.key.kind, copy.key.id, copy: fields, since: link.fields?.since,
                    now: now, reason),
                written.insert(Self.lineKey(of: link, copy.key.id, in: realm)).inserted
            else { continue }
            let key = Self.lineKey(of: link, copy.key.id, in: realm)
            batch.put(key, try CanonicalJSON(encoding: line), decision: input)
            let name = state.name(of: link.owner.person)
            guard let notice = SharingHistory.notice(line, id: key.id, owner: name, verdict: verdict) else { continue }
            try put(notice, named: "\(link.key.id.text) \(copy.position)", in: realm, input)
        }
    }

    /// Notifies the recipient of a new copy, and removes the `EndedShare` of an earlier one.
    private mutating func recordBegin(of link: Link, in realm: Int32, _ input: Int) throws {
        guard let copy = state.copyKey(link), state.objects[copy]?.fields == nil,
            let fields = link.itemKey.flatMap({ state.objects[$0]?.fields })
        else { return }
        let line = Self.lineKey(of: link, copy.id, in: realm)
        if written.insert(line).inserted { batch.delete(line, decision: input) }
        let notice = SharingHistory.notice(
            ofShared: copy.id, copy.kind, fields, owner: state.name(of: link.owner.person), now: now)
        guard let notice else { return }
        try put(notice, named: "\(link.key.id.text) \(link.object?.position ?? 0)", in: realm, input)
    }

    /// Notifies the recipient when the references to an ended share are removed.
    mutating func notifyOfEnd(of share: UUID, _ owner: Owner, _ recipient: UUID, _ input: Int) throws {
        guard let realm = state.realms[recipient],
            state.objects[ObjectKey(realm: realm, kind: .share, id: share)]?.fields != nil,
            let notice = SharingHistory.notice(
                ofEnded: share, by: state.ender(share, of: owner, with: recipient), owner: state.name(of: owner.person),
                now: now)
        else { return }
        let position = state.shareKey(share).map { state.position($0) } ?? 0
        try put(notice, named: "\(share.text) \(position)", in: realm, input)
    }

    /// Writes a notice under an id derived from its event.
    ///
    /// - Parameter name: The object that changed, and its position.
    private mutating func put(_ notice: Notice, named name: String, in realm: Int32, _ input: Int) throws {
        let id = UUID(name: "\(notice.code.rawValue) \(name)", in: .shareNotices)
        let key = ObjectKey(realm: realm, kind: .notice, id: id)
        guard written.insert(key).inserted else { return }
        batch.put(key, try CanonicalJSON(encoding: notice), decision: input)
    }

    private static func lineKey(of link: Link, _ item: UUID, in realm: Int32) -> ObjectKey {
        ObjectKey(realm: realm, kind: .endedShare, id: EndedShare.id(of: link.owner.person, item: item))
    }

    /// Puts the links again that ended because the item was deleted, if the item exists again. Links that a person has
    /// ended since stay ended.
    ///
    /// - Returns: Whether all were processed; each processed one is not read again.
    mutating func restoreLinks(of item: ObjectKey, _ input: Int) throws -> Bool {
        guard let ended = state.endedLinks[input], state.objects[item]?.fields != nil else { return true }
        var count = 0
        for record in ended.records {
            guard let fields = record.fields,
                let deleted = try? JSONObject(fields.bytes).decoded(as: DeletedObject.self),
                let link = deleted.sharedItem, link.item == item.id, link.kind.kind == item.kind
            else { continue }
            let key = ObjectKey(realm: record.key.realm, kind: .sharedItem, id: record.key.id)
            guard written.insert(key).inserted, written.insert(record.key).inserted else { return false }
            count += 1
            expect(record.key, at: record.position, input)
            expect(key, at: state.position(key), input)
            if state.objects[key]?.fields != nil {
                batch.delete(record.key, decision: input)
            } else if hasEndedSince(ended.share(record), record, input) {
                let remaining = DeletedObject(link, deletedAt: deleted.deletedAt, reason: .shareEnded)
                batch.put(record.key, try CanonicalJSON(encoding: remaining), decision: input)
            } else {
                // In the owner's name: the link is newer than what ended before.
                batch.put(key, try CanonicalJSON(encoding: link), decision: input, isEdit: true)
                batch.delete(record.key, decision: input)
            }
        }
        return count == 0 || ended.records.count < SharingLoader.restoredCountMax
    }

    /// Returns whether a person has ended the whole share since the link ended.
    private mutating func hasEndedSince(_ share: UUID, _ record: RealmObject, _ input: Int) -> Bool {
        guard let key = state.shareKey(share) else { return false }
        expect(key, at: state.position(key), input)
        return state.objects[key]?.editPosition ?? 0 > record.position
    }
}

extension UUID {
    /// The namespace of the ids of notices about shares. Never changes.
    static let shareNotices = UUID(
        uuid: (0x3D, 0x0C, 0x51, 0xE7, 0xA2, 0x94, 0x4B, 0x1F, 0x9E, 0x68, 0x70, 0xC5, 0x12, 0xDB, 0x86, 0x4A))
}
