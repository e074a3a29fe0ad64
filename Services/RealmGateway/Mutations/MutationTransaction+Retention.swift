import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The content of deleted objects: a tombstone has no fields, so only the transaction of the deletion can retain them.
extension MutationTransaction {
    /// Adds the `DeletedObject`s of deleted objects, removes those of restored ones, and records who ends a share.
    func retainDeleted(in batch: inout WriteBatch) throws {
        // Each object is written once: an appointment and a note may have the same id.
        var written = Set(plan.targets.lazy.filter { $0.value.write != nil }.map { key($0.key) })
        for (target, state) in plan.orderedTargets {
            guard let write = state.write else { continue }
            let decision = Int(decision(state.writer))
            switch (write, target.realm.realmClass) {
            case (.delete, .share) where target.kind == .share:
                try recordEnd(of: target, state, in: &batch)
            case (.delete, .user) where target.kind.isRestorable,
                (.putAndDelete, .user) where target.kind.isRestorable:
                guard let fields = state.deletedFields,
                    let deleted = DeletedObject(target.kind, fields, deletedAt: plan.now),
                    written.insert(deletedKey(target)).inserted
                else { continue }
                batch.put(deletedKey(target), try CanonicalJSON(encoding: deleted), decision: decision)
            case (.put, .user) where target.kind.isRestorable && state.isRestored:
                guard written.insert(deletedKey(target)).inserted else { continue }
                batch.delete(deletedKey(target), decision: decision)
            case (.put, _), (.delete, _), (.putAndDelete, _): continue
            }
        }
    }

    private func deletedKey(_ target: TargetKey) -> ObjectKey {
        ObjectKey(realm: key(target).realm, kind: .deletedObject, id: target.id)
    }

    /// Writes the person who ends a share into the copy of their own realm, which `share-fan-out` removes afterwards:
    /// a tombstone does not have its author. The copy exists, because it was created with the share.
    private func recordEnd(of target: TargetKey, _ state: TargetState, in batch: inout WriteBatch) throws {
        guard let path = state.writer.own, let realm = realms[path], let person = state.writer.object,
            let fields = state.deletedFields
        else { return }
        let ended = try CanonicalJSON(fields).merging(CanonicalJSON("{\"endedBy\":\"\(person.text)\"}"))
        let copy = ObjectKey(realm: realm, kind: .share, id: target.id)
        batch.put(copy, ended, decision: Int(decision(state.writer)))
    }
}
