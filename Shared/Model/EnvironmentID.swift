/// The id of a tenant: one customer with its e-mail domains, identity provider and back ends.
///
/// It is the first part of every key in PostgreSQL, and of an event's `ce_id`.
public struct EnvironmentID: RawRepresentable, Codable, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number that PostgreSQL assigned; it never changes and is never reused.
    public let rawValue: Int32

    /// Creates the id with this number.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }

    /// Orders environments by number.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
