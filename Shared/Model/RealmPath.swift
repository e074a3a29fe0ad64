import Essentials
public import FoundationEssentials

/// A text that is not a realm's path, with the reason.
public struct InvalidRealmPath: Error, Equatable, CustomStringConvertible {
    /// The refused text.
    public let text: String
    /// The reason, for display.
    public let reason: String
    /// The text and the reason in one line.
    public var description: String { "'\(text)' is not a realm path: \(reason)" }
}

/// The name of a realm inside its environment, for example `/users/ana@example.com`.
///
/// A path has one or two segments of printable ASCII without `/`, `?`, `#`, `%`, quotes, `\` and blanks, and at most
/// ``lengthMax`` bytes. It needs no escaping in a URL's path, a JSON key and a message header.
public struct RealmPath: Codable, Hashable, Comparable, Sendable, LosslessStringConvertible {
    /// Maximum length in bytes: an e-mail address has at most 254 (RFC 5321 §4.5.3.1.3), and its prefix 7.
    public static let lengthMax = 261

    /// The path, beginning with `/`.
    public let description: String

    /// The realm of all `Realms` objects, with which services detect new users.
    public static let users = RealmPath(trusted: "/users")

    /// The realm that all people of the environment read: people, teams, memberships.
    public static let common = RealmPath(trusted: "/common")

    /// The managers' realm: master tasks.
    public static let manager = RealmPath(trusted: "/manager")

    /// The realm of master tasks that were completed long ago; managers open it explicitly.
    public static let archive = RealmPath(trusted: "/archive")

    /// The services' realm of requests to poll back ends.
    public static let polls = RealmPath(trusted: "/polls")

    /// The services' realm of the polled records of a person's entries.
    ///
    /// - Throws: As ``user(_:)``.
    public static func seen(_ email: String) throws(InvalidRealmPath) -> RealmPath {
        try RealmPath(validating: "/seen/" + EmailAddress.lowered(email))
    }

    /// The services' realm of the write checkpoints of a person's clients of the PowerSync protocol.
    ///
    /// - Throws: As ``user(_:)``.
    public static func sent(_ email: String) throws(InvalidRealmPath) -> RealmPath {
        try RealmPath(validating: "/sent/" + EmailAddress.lowered(email))
    }

    /// Returns the personal realm of the user with this e-mail address.
    ///
    /// ASCII letters are lowered, because identity providers differ in how they write a person's address.
    ///
    /// - Throws: ``InvalidRealmPath`` if the address is empty or has characters that a path must not have.
    public static func user(_ email: String) throws(InvalidRealmPath) -> RealmPath {
        // Lower only ASCII: U+212A (Kelvin sign) would become "k", another person's address.
        try RealmPath(validating: "/users/" + EmailAddress.lowered(email))
    }

    /// Returns the realm of the reporting trees of a catalogue.
    public static func catalogue(_ id: UUID) -> RealmPath { RealmPath(trusted: "/catalogues/" + id.text) }

    /// Returns the realm of a team's tasks.
    public static func team(_ id: UUID) -> RealmPath { RealmPath(trusted: "/teams/" + id.text) }

    /// Returns the realm of the items that one person shares with another.
    public static func share(_ id: UUID) -> RealmPath { RealmPath(trusted: "/shares/" + id.text) }

    /// Parses a path; returns `nil` if it is invalid.
    public init?(_ description: String) { try? self.init(validating: description) }

    /// Parses a path.
    ///
    /// - Throws: ``InvalidRealmPath`` with the reason.
    public init(validating text: String) throws(InvalidRealmPath) {
        if let reason = Self.objection(to: text) { throw InvalidRealmPath(text: text, reason: reason) }
        description = Self.lowercasingID(text)
    }

    private init(trusted text: String) { description = text }

    /// The e-mail address if this is a user's personal realm, otherwise `nil`.
    public var email: String? { secondSegment(after: "/users/") }

    /// The e-mail address if this is the realm of a person's polled records, otherwise `nil`.
    public var seenEmail: String? { secondSegment(after: "/seen/") }

    /// The catalogue's id if this is a catalogue's realm, otherwise `nil`.
    public var catalogueID: UUID? { secondSegment(after: "/catalogues/").flatMap { UUID(ascii: $0) } }

    /// Reads the path from a JSON string.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        do { try self.init(validating: text) } catch { throw decoder.corrupted(error.description) }
    }

    /// Writes the path as a JSON string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Orders paths as text.
    public static func < (left: Self, right: Self) -> Bool { left.description < right.description }

    private func secondSegment(after prefix: String) -> String? {
        description.hasPrefix(prefix) ? String(description.dropFirst(prefix.count)) : nil
    }

    /// Returns the text with its UUID in lower case, the stored form of all paths with an id.
    private static func lowercasingID(_ text: String) -> String {
        for prefix in ["/catalogues/", "/teams/", "/shares/"] where text.hasPrefix(prefix) {
            if let id = UUID(ascii: text.dropFirst(prefix.count)) { return prefix + id.text }
        }
        return text
    }

    private static func objection(to text: String) -> String? {
        guard text.utf8.first == UInt8(ascii: "/") else { return "it does not begin with '/'" }
        guard text.utf8.count <= lengthMax else { return "it is longer than \(lengthMax) bytes" }
        let segments = text.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard segments.count <= 2 else { return "it has more than two segments" }
        guard segments.allSatisfy({ !$0.isEmpty }) else { return "a segment is empty" }
        let refused = Array("?#%\"\\".utf8)
        let isAllowed = { (byte: UInt8) in (0x21...0x7E).contains(byte) && !refused.contains(byte) }
        guard segments.allSatisfy({ $0.allSatisfy(isAllowed) }) else {
            return "only printable ASCII without blanks, quotes, '\\', '?', '#' and '%' is allowed"
        }
        return nil
    }
}
