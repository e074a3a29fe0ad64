import Essentials
public import FoundationEssentials
public import Model

/// A device's copy of its realms: what a checkpoint made whole, and beside it what has arrived since.
///
/// Only whole checkpoints are shown. What is staged outlives a lost connection together with its cursor, so that a
/// long first download goes on where it was cut.
public struct DeviceCopy: Equatable, Sendable {
    private struct Realm: Equatable, Codable {
        var content: RealmContent = [:]
        /// Arrived, not yet whole; `nil` is a tombstone.
        var staged: [ObjectID: HeldObject?] = [:]
        /// The server had the device throw away what it holds; that happens at the checkpoint.
        var isReset = false
        /// Where to go on: after the last line, or the last checkpoint.
        var cursor: String?
        /// Whether the stream that is read now has opened it.
        var isOpen = false
        /// The stream that is read now was asked for without it: it comes whole, or is not the person's any more.
        var isUnnamed = false
    }

    /// The most realms that a request for a stream names, as the gateway takes them.
    public static let namedCountMax = 1_000

    private var realms: [RealmPath: Realm] = [:]
    /// The position up to which the copy is whole; 0 before the first checkpoint.
    public private(set) var position: Int64 = 0

    /// A copy of nothing.
    public init() {}

    /// Where to go on, by realm. A realm without a cursor begins anew; it is named all the same, or the server would
    /// not tell that it is no longer the person's.
    public var cursors: [RealmPath: String?] { realms.mapValues(\.cursor) }

    /// What the last whole checkpoint had, by realm.
    public var contents: [RealmPath: RealmContent] { realms.mapValues(\.content) }

    /// An object as of the last whole checkpoint.
    public subscript(realm: RealmPath, object: ObjectID) -> HeldObject? { realms[realm]?.content[object] }

    /// All objects of a kind, in any realm or in one sort of realm.
    public func objects(
        of kind: Kind, in isWanted: (RealmPath) -> Bool = { _ in true }
    ) -> [(id: UUID, object: HeldObject)] {
        realms.filter { isWanted($0.key) }.values.flatMap { $0.content.objects(of: kind) }
    }

    /// A new stream begins: it opens each realm anew, or closes it.
    ///
    /// - Parameters:
    ///   - wanted: The realms that are wanted; `nil`: all. Others are not named.
    ///   - realmCountMax: The most realms that its request names. Those with the most objects are: a realm that is not
    ///     named is sent whole. One that is not sent either is gone with the next checkpoint.
    /// - Returns: What the request names, as ``cursors`` has it.
    public mutating func streamBegins(
        only wanted: Set<RealmPath>? = nil, realmCountMax: Int = namedCountMax
    ) -> [RealmPath: String?] {
        for path in Array(realms.keys) {
            realms[path]?.isOpen = false
            realms[path]?.isUnnamed = wanted.map { !$0.contains(path) } ?? false
        }
        let named = realms.filter { !$0.value.isUnnamed }
        guard named.count > realmCountMax else { return named.mapValues(\.cursor) }
        let saved = named.mapValues { $0.cursor == nil ? -1 : $0.content.count + $0.staged.count }
        let ordered = saved.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
        for path in ordered.dropFirst(realmCountMax) { realms[path]?.isUnnamed = true }
        return cursors.filter { realms[$0.key]?.isUnnamed == false }
    }

    /// Takes in one line.
    ///
    /// - Returns: The objects that changed in what is shown: at a checkpoint, or when a realm was closed.
    public mutating func apply(_ line: SyncLine) -> Set<ObjectAddress> {
        switch line {
        case .open(let path, let isReset):
            open(path, isReset: isReset)
            return []
        case .closed(let path):
            // Not permitted any more: gone at once, not at the next checkpoint.
            return close(path)
        case .objects(let path, let cursor, let list):
            stage(list, cursor: cursor, in: path)
            return []
        case .checkpoint(let position, let cursor, let cursors):
            self.position = position
            var changed: Set<ObjectAddress> = []
            for path in Array(realms.keys) where realms[path].map({ $0.isUnnamed && !$0.isOpen }) ?? false {
                changed.formUnion(close(path))
            }
            // An array, since the dictionary's own keys would share its storage and have it copied.
            for path in Array(realms.keys) where realms[path]?.isOpen ?? false {
                changed.formUnion(settle(path, cursor: cursors[path] ?? cursor))
            }
            return changed
        case .keepalive(_, let position, let cursor, let cursors):
            rest(at: position, cursor: cursor, cursors)
            return []
        }
    }

    private mutating func open(_ path: RealmPath, isReset: Bool) {
        var realm = realms.removeValue(forKey: path) ?? Realm()
        defer { realms[path] = realm }
        realm.isOpen = true
        // Without a cursor it comes whole, whatever is held.
        guard isReset || realm.cursor == nil else { return }
        realm.isReset = true
        realm.staged = [:]
        realm.cursor = nil
    }

    private mutating func close(_ path: RealmPath) -> Set<ObjectAddress> {
        let gone = realms.removeValue(forKey: path)?.content ?? [:]
        return Set(gone.keys.map { ObjectAddress(path, $0) })
    }

    private mutating func stage(_ list: [SyncLine.Change], cursor: String?, in path: RealmPath) {
        var realm = realms.removeValue(forKey: path) ?? Realm()
        defer { realms[path] = realm }
        realm.isOpen = true
        for change in list { realm.staged[change.id] = .some(change.object) }
        if let cursor { realm.cursor = cursor }
    }

    /// Shows what was staged.
    private mutating func settle(_ path: RealmPath, cursor: String?) -> Set<ObjectAddress> {
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
        return Set(changed.map { ObjectAddress(path, $0) })
    }

    /// Nothing happened: the copy is whole up to the keepalive's position, unless something waits for its checkpoint.
    private mutating func rest(at position: Int64, cursor: String?, _ cursors: [RealmPath: String]) {
        let isWhole = realms.values.allSatisfy { !$0.isOpen || ($0.staged.isEmpty && !$0.isReset) }
        guard isWhole else { return }
        self.position = max(self.position, position)
        for path in Array(realms.keys) where realms[path]?.isOpen ?? false {
            if let cursor = cursors[path] ?? cursor { realms[path]?.cursor = cursor }
        }
    }
}

extension DeviceCopy: Codable {
    private enum CodingKeys: CodingKey { case realms, position, kinds }

    /// Reads a stored copy. One of a version that knew fewer kinds has passed over their objects: the realms that may
    /// have such objects begin anew, and what they held is shown until the next checkpoint.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        realms = try container.decode([RealmPath: Realm].self, forKey: .realms)
        position = try container.decode(Int64.self, forKey: .position)
        let known = Set(try container.decode([String].self, forKey: .kinds))
        let homes = Kind.allCases.filter { !known.contains($0.rawValue) }.flatMap(\.row.realms)
        for path in Array(realms.keys) where homes.contains(path.realmClass.name) { realms[path]?.cursor = nil }
    }

    /// Writes what ``init(from:)`` reads, and which kinds this version knows.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(realms, forKey: .realms)
        try container.encode(position, forKey: .position)
        try container.encode(Kind.allCases.map(\.rawValue), forKey: .kinds)
    }
}
