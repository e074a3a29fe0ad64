import Essentials
public import FoundationEssentials

/// The object that an event concerns: `<realm path>/<Kind>/<uuid>`, for example
/// `/users/ana@example.com/TimeEntry/0b7f…`.
public struct EventSubject: Hashable, Sendable, LosslessStringConvertible {
    /// The object's realm.
    public let realm: RealmPath
    /// The object's kind.
    public let kind: Kind
    /// The object's id.
    public let id: UUID

    /// Creates the subject of an object.
    public init(realm: RealmPath, kind: Kind, id: UUID) {
        self.realm = realm
        self.kind = kind
        self.id = id
    }

    /// Parses a subject from its end, because the path contains `/`; returns `nil` if a component is invalid. A kind
    /// that an environment declares is only identified by its name (``Kind/init(named:)``).
    public init?(_ description: String) {
        let parts = description.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 4, let kind = Self.kind(parts[parts.count - 2]),
            let id = UUID(ascii: parts[parts.count - 1]),
            let realm = RealmPath(parts.dropLast(2).joined(separator: "/"))
        else { return nil }
        self.init(realm: realm, kind: kind, id: id)
    }

    private static func kind(_ name: Substring) -> Kind? {
        if let kind = Kind(rawValue: String(name)) { return kind }
        let isLetter = { (byte: UInt8) in (65...90).contains(byte) || (97...122).contains(byte) }
        guard let first = name.utf8.first, (65...90).contains(first), name.utf8.count <= 63,
            name.utf8.allSatisfy({ isLetter($0) || (48...57).contains($0) })
        else { return nil }
        return Kind(named: String(name))
    }

    /// The subject's text, with the id in lower case.
    public var description: String { "\(realm)/\(kind.rawValue)/\(id.text)" }
}
