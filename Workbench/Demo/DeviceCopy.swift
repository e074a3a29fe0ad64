import Essentials
import FoundationEssentials
import Model

/// Names an object within a realm.
struct ObjectID: Hashable, Comparable, Sendable, CustomStringConvertible {
    let kind: Kind
    let id: UUID

    var description: String { "\(kind.rawValue) \(id.text)" }

    static func < (left: Self, right: Self) -> Bool {
        (left.kind.rawValue, left.id.text) < (right.kind.rawValue, right.id.text)
    }
}

/// An object as a device, or PostgreSQL, holds it.
struct HeldObject: Equatable, Sendable {
    let position: Int64
    /// JSON as it came.
    let fields: [UInt8]
}

/// The objects of a realm.
typealias RealmContent = [ObjectID: HeldObject]

/// A device's copy of its realms: what a checkpoint made whole, and beside it what has arrived since.
///
/// Only whole checkpoints are shown. What is staged outlives a lost connection together with its cursor, so that a
/// long first download goes on where it was cut.
struct DeviceCopy: Sendable {
    private struct Realm {
        var content: RealmContent = [:]
        /// Arrived, not yet whole; `nil` is a tombstone.
        var staged: [ObjectID: HeldObject?] = [:]
        /// The server had the device throw away what it holds; that happens at the checkpoint.
        var isReset = false
        /// Where to go on: after the last line, or the last checkpoint.
        var cursor: String?
    }

    private var realms: [RealmPath: Realm] = [:]
    /// The position up to which the copy is whole; 0 before the first checkpoint.
    private(set) var position: Int64 = 0

    /// Where to go on, by realm.
    var cursors: [RealmPath: String] { realms.compactMapValues(\.cursor) }

    /// What the device shows.
    var contents: [RealmPath: RealmContent] { realms.mapValues(\.content) }

    subscript(realm: RealmPath, object: ObjectID) -> HeldObject? { realms[realm]?.content[object] }

    /// All objects of a kind, in any realm or in one sort of realm.
    func objects(
        of kind: Kind, in isWanted: (RealmPath) -> Bool = { _ in true }
    ) -> [(id: UUID, object: HeldObject)] {
        realms.filter { isWanted($0.key) }.values.flatMap { realm in
            realm.content.compactMap { $0.key.kind == kind ? ($0.key.id, $0.value) : nil }
        }
    }

    /// Takes in one line.
    ///
    /// - Returns: The objects that changed in what is shown: at a checkpoint, or when a realm was closed.
    mutating func apply(_ line: SyncLine) -> Set<ObjectID> {
        switch line {
        case .open(let path, let isReset):
            var realm = realms[path] ?? Realm()
            if isReset {
                realm.isReset = true
                realm.staged = [:]
                realm.cursor = nil
            }
            realms[path] = realm
            return []
        case .closed(let path):
            // Not permitted any more: gone at once, not at the next checkpoint.
            return Set(realms.removeValue(forKey: path)?.content.keys.map { $0 } ?? [])
        case .objects(let path, let cursor, let list):
            for change in list { realms[path, default: Realm()].staged[change.id] = .some(change.object) }
            if let cursor { realms[path, default: Realm()].cursor = cursor }
            return []
        case .checkpoint(let position, let cursors):
            self.position = position
            var changed: Set<ObjectID> = []
            // An array, since the dictionary's own keys would share its storage and have it copied.
            for path in Array(realms.keys) { changed.formUnion(settle(path, cursor: cursors[path])) }
            return changed
        case .keepalive(_, let cursors):
            for (path, cursor) in cursors where realms[path]?.staged.isEmpty ?? false { realms[path]?.cursor = cursor }
            return []
        }
    }

    /// Shows what was staged.
    private mutating func settle(_ path: RealmPath, cursor: String?) -> Set<ObjectID> {
        guard var realm = realms.removeValue(forKey: path) else { return [] }
        defer { realms[path] = realm }
        realm.cursor = cursor ?? realm.cursor
        var changed = Set(realm.staged.keys)
        if realm.isReset {
            changed.formUnion(realm.content.keys)
            realm.content = [:]
            realm.isReset = false
        }
        for (id, object) in realm.staged { realm.content[id] = object }
        realm.staged = [:]
        return changed
    }
}
