package import FoundationEssentials
import Model

/// What a device holds of a realm: opaque to it, `generation:start:position`, and while a first download is under way
/// also the last key it got: `generation:start:position:kind:id`.
///
/// It is good while `compactedPosition ≤ start`: all tombstones since are still there. So a long download can be
/// resumed, and what changed behind its back is caught up with from `start`.
package struct Cursor: Equatable, Sendable, LosslessStringConvertible {
    package var generation: Int64
    /// The counter when the download began; equal to `position` once the realm is whole.
    package var start: Int64
    /// Everything up to here is held, except while `key` is set: then what the device held before the download.
    package var position: Int64
    /// The last key of a download under way.
    package var key: Key?

    package struct Key: Equatable, Sendable {
        package var kind: String
        package var id: UUID
        package init(kind: String, id: UUID) {
            self.kind = kind
            self.id = id
        }
    }

    package init(generation: Int64, start: Int64, position: Int64, key: Key? = nil) {
        self.generation = generation
        self.start = start
        self.position = position
        self.key = key
    }

    package init?(_ description: String) {
        guard description.utf8.count <= 200 else { return nil }
        let parts = description.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3 || parts.count == 5, let generation = Int64(parts[0]), let start = Int64(parts[1]),
            let position = Int64(parts[2]), position >= 0, start >= position, generation >= 1
        else { return nil }
        self.init(generation: generation, start: start, position: position)
        if parts.count == 5 {
            guard let kind = Kind(rawValue: String(parts[3])), let id = UUID(uuidString: String(parts[4])) else {
                return nil
            }
            key = Key(kind: kind.rawValue, id: id)
        }
    }

    package var description: String {
        let whole = "\(generation):\(start):\(position)"
        guard let key else { return whole }
        return "\(whole):\(key.kind):\(key.id.text)"
    }

    /// Whether what the device holds can be continued, or must be thrown away.
    package func isGood(for counter: EnvironmentCounter) -> Bool {
        generation == counter.generation && start >= counter.compactedPosition && start <= counter.position
    }
}
