import Essentials
public import FoundationEssentials

/// Which object an event is about: `<realm path>/<Kind>/<uuid>`,
/// for example `/users/ana@example.com/TimeEntry/0b7f…`.
public struct EventSubject: Hashable, Sendable, LosslessStringConvertible {
    /// The realm the object is in.
    public let realm: RealmPath
    /// What the object is.
    public let kind: Kind
    /// The object's id.
    public let id: UUID

    /// Names an object.
    public init(realm: RealmPath, kind: Kind, id: UUID) {
        self.realm = realm
        self.kind = kind
        self.id = id
    }

    /// Reads a subject from its end, since the path has `/` of its own; `nil` when a part is not what it should be.
    public init?(_ description: String) {
        let parts = description.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 4, let kind = Kind(rawValue: String(parts[parts.count - 2])),
            let id = UUID(ascii: parts[parts.count - 1]),
            let realm = RealmPath(parts.dropLast(2).joined(separator: "/"))
        else { return nil }
        self.init(realm: realm, kind: kind, id: id)
    }

    /// The subject's text, its id in lower case.
    public var description: String { "\(realm)/\(kind.rawValue)/\(id.text)" }
}
