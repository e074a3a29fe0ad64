import Essentials
package import FoundationEssentials
package import Model

/// A device's state of a realm, opaque to the device: `generation:start:position`, and during the first download also
/// the last received key: `generation:start:position:kind:id`.
///
/// An integration's cursor for its whole environment also has a digest of the requested kinds, and the realm in its
/// key: `generation:start:position:kinds`, `generation:start:position:kinds:realm:kind:id`.
///
/// A cursor is valid while `compactedPosition ≤ start`: all later tombstones still exist. Therefore a long download can
/// be resumed, and concurrent changes are read starting at `start`.
package struct Cursor: Equatable, Sendable, LosslessStringConvertible {
    package var generation: Int64
    /// The counter when the download began; equal to `position` when the realm is complete.
    package var start: Int64
    /// The position up to which the device has all changes; while `key` is set, the one before the download.
    package var position: Int64
    /// The digest of the kinds in an environment's cursor; `nil` in a realm's cursor.
    package var kinds: UInt64?
    /// The last key of a download in progress.
    package var key: Key?

    package struct Key: Equatable, Sendable {
        /// The realm's number; `nil` in a realm's cursor.
        package var realm: Int32?
        package var kind: Kind
        package var id: UUID
        package init(realm: Int32? = nil, kind: Kind, id: UUID) {
            self.realm = realm
            self.kind = kind
            self.id = id
        }

        /// Creates a key that precedes all keys of a realm.
        package init(firstOf realm: Int32) { self.init(realm: realm, kind: Kind.first, id: .zero) }
    }

    package init(generation: Int64, start: Int64, position: Int64, kinds: UInt64? = nil, key: Key? = nil) {
        self.generation = generation
        self.start = start
        self.position = position
        self.kinds = kinds
        self.key = key
    }

    package init?(_ description: String) {
        guard description.utf8.count <= 200 else { return nil }
        var parts = description.split(separator: ":", omittingEmptySubsequences: false)[...]
        guard [3, 4, 5, 7].contains(parts.count), let generation = Int64(parts.removeFirst()),
            let start = Int64(parts.removeFirst()), let position = Int64(parts.removeFirst()), position >= 0,
            start >= position, generation >= 1
        else { return nil }
        self.init(generation: generation, start: start, position: position)
        if parts.count == 1 || parts.count == 4 {
            guard let kinds = UInt64(parts.removeFirst(), radix: 16) else { return nil }
            self.kinds = kinds
        }
        if parts.isEmpty { return }
        var realm: Int32?
        if kinds != nil {
            guard let number = Int32(parts.removeFirst()), number >= 0 else { return nil }
            realm = number
        }
        let name = String(parts.removeFirst())
        guard let kind = Kind(rawValue: name) ?? Int16(name).flatMap(Kind.init(ownNumber:)),
            let id = UUID(uuidString: String(parts.removeFirst()))
        else { return nil }
        key = Key(realm: realm, kind: kind, id: id)
    }

    package var description: String {
        let kinds = kinds.map { ":" + String($0, radix: 16) } ?? ""
        let whole = "\(generation):\(start):\(position)\(kinds)"
        guard let key else { return whole }
        return "\(whole):\(key.realm.map { "\($0):" } ?? "")\(key.kind.cursorText):\(key.id.text)"
    }

    /// Returns a digest of a set of kinds (FNV-1a of their sorted names). A kind that is added to an integration's
    /// kinds changes the digest, because existing copies lack its objects.
    package static func digest(of kinds: some Sequence<Kind>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Set(kinds.map(\.rawValue)).sorted().joined(separator: ",").utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return hash
    }

    /// Whether the device can continue with the cursor; otherwise it must discard its copy.
    package func isValid(for counter: EnvironmentCounter) -> Bool {
        generation == counter.generation && start >= counter.compactedPosition && start <= counter.position
    }
}

extension Kind {
    /// A built-in kind's name, or the number of another one.
    fileprivate var cursorText: String { if case .own(let kind) = self { "\(kind.number)" } else { rawValue } }

    fileprivate init?(ownNumber number: Int16) {
        guard OwnKind.numbers.contains(number) else { return nil }
        self = .own(OwnKind(number: number))
    }
}
