public import FoundationEssentials
public import Model

/// A device's copy of its realms: the content of the last consistent checkpoint, and staged changes received since.
///
/// Only consistent checkpoints are shown. Staged changes and their cursor are stored, so that an interrupted first
/// download resumes after a lost connection.
public struct DeviceCopy: Equatable, Sendable {
    private struct Realm: Equatable, Codable {
        var content: RealmContent = [:]
        /// Received changes of an incomplete checkpoint; `nil` is a tombstone.
        var staged: [ObjectID: DeviceObject?] = [:]
        /// Whether the server requested a reset: the content is discarded at the checkpoint.
        var isReset = false
        /// The position at which to resume: after the last line, or the last checkpoint.
        var cursor: String?
        /// Whether the current stream has opened the realm.
        var isOpen = false
        /// Whether the current stream's request did not name the realm: it is sent completely, or is not permitted any
        /// more.
        var isUnnamed = false
    }

    /// Maximum number of realms named in a request for a stream, as the gateway accepts.
    public static let namedCountMax = 1_000

    private var realms: [RealmPath: Realm] = [:]
    /// The position up to which the copy is complete; 0 before the first checkpoint.
    public private(set) var position: Int64 = 0

    /// Creates an empty copy.
    public init() {}

    /// The cursors with which to resume, by realm. A realm without a cursor is downloaded from scratch; it is named
    /// nevertheless, so that the server can report that it is no longer permitted.
    public var cursors: [RealmPath: String?] { realms.mapValues(\.cursor) }

    /// The contents of the last consistent checkpoint, by realm.
    public var contents: [RealmPath: RealmContent] { realms.mapValues(\.content) }

    /// Returns an object of the last consistent checkpoint.
    public subscript(realm: RealmPath, object: ObjectID) -> DeviceObject? { realms[realm]?.content[object] }

    /// Returns all objects of a kind, in all realms or in matching ones.
    public func objects(
        of kind: Kind, in isIncluded: (RealmPath) -> Bool = { _ in true }
    ) -> [(id: UUID, object: DeviceObject)] {
        realms.filter { isIncluded($0.key) }.values.flatMap { $0.content.objects(of: kind) }
    }

    /// Prepares for a new stream, which opens or closes each realm.
    ///
    /// - Parameters:
    ///   - included: The requested realms; `nil`: all. Other realms are not named.
    ///   - realmCountMax: Maximum number of realms named in the request, those with the most objects. An unnamed realm
    ///     is sent completely; if it is not sent, it is removed at the next checkpoint.
    /// - Returns: The realms to name in the request, see ``cursors``.
    public mutating func beginStream(
        only included: Set<RealmPath>? = nil, realmCountMax: Int = namedCountMax
    ) -> [RealmPath: String?] {
        for path in Array(realms.keys) {
            realms[path]?.isOpen = false
            realms[path]?.isUnnamed = included.map { !$0.contains(path) } ?? false
        }
        let named = realms.filter { !$0.value.isUnnamed }
        guard named.count > realmCountMax else { return named.mapValues(\.cursor) }
        let saved = named.mapValues { $0.cursor == nil ? -1 : $0.content.count + $0.staged.count }
        let ordered = saved.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
        for path in ordered.dropFirst(realmCountMax) { realms[path]?.isUnnamed = true }
        return cursors.filter { realms[$0.key]?.isUnnamed == false }
    }

    /// Applies one line of the stream.
    ///
    /// - Returns: The changed objects, at a checkpoint or when a realm was closed.
    public mutating func apply(_ line: SyncLine) -> Set<ObjectAddress> {
        switch line {
        case .open(let path, let isReset):
            open(path, isReset: isReset)
            return []
        case .closed(let path):
            // The realm is not permitted any more: remove it immediately, not at the next checkpoint.
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
            // An array, because iterating the dictionary's keys while changing it would copy its storage.
            for path in Array(realms.keys) where realms[path]?.isOpen ?? false {
                changed.formUnion(settle(path, cursor: cursors[path] ?? cursor))
            }
            return changed
        case .keepalive(_, let position, let cursor, let cursors):
            keepalive(at: position, cursor: cursor, cursors)
            return []
        }
    }

    private mutating func open(_ path: RealmPath, isReset: Bool) {
        var realm = realms.removeValue(forKey: path) ?? Realm()
        defer { realms[path] = realm }
        realm.isOpen = true
        // Without a cursor the server sends the complete realm.
        guard isReset || realm.cursor == nil else { return }
        realm.isReset = true
        realm.staged = [:]
        realm.cursor = nil
    }

    private mutating func close(_ path: RealmPath) -> Set<ObjectAddress> {
        let removed = realms.removeValue(forKey: path)?.content ?? [:]
        return Set(removed.keys.map { ObjectAddress(path, $0) })
    }

    private mutating func stage(_ list: [SyncLine.Change], cursor: String?, in path: RealmPath) {
        var realm = realms.removeValue(forKey: path) ?? Realm()
        defer { realms[path] = realm }
        realm.isOpen = true
        for change in list { realm.staged[change.id] = .some(change.object) }
        if let cursor { realm.cursor = cursor }
    }

    /// Makes the staged changes visible.
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

    /// Processes a keepalive: the copy is complete up to its position, unless staged changes wait for their checkpoint.
    private mutating func keepalive(at position: Int64, cursor: String?, _ cursors: [RealmPath: String]) {
        let isComplete = realms.values.allSatisfy { !$0.isOpen || ($0.staged.isEmpty && !$0.isReset) }
        guard isComplete else { return }
        self.position = max(self.position, position)
        for path in Array(realms.keys) where realms[path]?.isOpen ?? false {
            if let cursor = cursors[path] ?? cursor { realms[path]?.cursor = cursor }
        }
    }
}

extension DeviceCopy: Codable {
    private enum CodingKeys: CodingKey { case realms, position, kinds }

    /// The sign that the version which stored the copy supports kinds of any name.
    private static let anyKind = "*"

    /// Decodes a stored copy. A version that supported only some kinds has ignored objects of others: realms that may
    /// contain such objects are downloaded again, and their content is shown until the next checkpoint.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        realms = try container.decode([RealmPath: Realm].self, forKey: .realms)
        position = try container.decode(Int64.self, forKey: .position)
        let storedKinds = Set(try container.decode([String].self, forKey: .kinds))
        if storedKinds.contains(Self.anyKind) { return }
        let ownHomes: [RealmClass.Name] = [.user, .team, .common, .manager]
        let homes = ownHomes + Kind.allCases.filter { !storedKinds.contains($0.rawValue) }.flatMap(\.row.realms)
        for path in Array(realms.keys) where homes.contains(path.realmClass.name) { realms[path]?.cursor = nil }
    }

    /// Encodes the copy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(realms, forKey: .realms)
        try container.encode(position, forKey: .position)
        try container.encode([Self.anyKind], forKey: .kinds)
    }
}
