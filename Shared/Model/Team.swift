public import Essentials
public import FoundationEssentials

/// Fields of a `Team` object, in `/common`. Its tasks are in ``RealmPath/team(_:)`` with the team's id.
public struct Team: Codable, Equatable, Sendable {
    /// The display name: visible, and unique in the environment as `DisplayName` compares names.
    public var name: String
    /// A description.
    public var teamDescription: String?
    /// The colour as six hexadecimal digits.
    public var backgroundColor: String?
    /// The id of the picture's blob.
    public var image: UUID?
    /// The time of its creation, as its manager's device wrote it.
    public var creationDate: Timestamp?
    /// The time of its last change, as a manager's device wrote it.
    public var modificationDate: Timestamp?

    /// Creates the fields of a team.
    public init(
        name: String, teamDescription: String? = nil, backgroundColor: String? = nil, image: UUID? = nil,
        creationDate: Timestamp? = nil, modificationDate: Timestamp? = nil
    ) {
        self.name = name
        self.teamDescription = teamDescription
        self.backgroundColor = backgroundColor
        self.image = image
        self.creationDate = creationDate
        self.modificationDate = modificationDate
    }
}

extension Team: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, teamDescription, backgroundColor, image, creationDate, modificationDate
    }

    package var objection: String? {
        if let backgroundColor, !Self.isColor(backgroundColor) {
            return "'backgroundColor' must be six hexadecimal digits such as 1E90FF"
        }
        return DisplayName.objection(to: name, of: "name")
    }

    private static func isColor(_ text: String) -> Bool {
        text.utf8.count == 6
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
    }

    /// The row of ``Kind/team``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.common], bytesMax: Kind.commonBytesMax, permissions: .team,
        route: Route(to: Topics.team, from: [.common]))
}

/// Fields of a `Membership` object: a person's membership in a team. In `/common`.
///
/// A separate object, because several managers change a team's members concurrently. Its id is derived from both
/// (``id(of:in:)``): there is one per pair, and a person's memberships are contiguous in the order of ids.
public struct Membership: Codable, Equatable, Sendable {
    /// The id of the `Person` object.
    public var person: UUID
    /// The id of the `Team` object.
    public var team: UUID

    /// Creates the fields of a membership.
    public init(person: UUID, team: UUID) {
        self.person = person
        self.team = team
    }

    /// Returns the id of a membership: the person's first eight bytes, then the team's last eight.
    public static func id(of person: UUID, in team: UUID) -> UUID { person.paired(with: team) }

    /// Returns the range of the ids of all of a person's memberships.
    public static func ids(of person: UUID) -> ClosedRange<UUID> { person.pairs }
}

extension Membership: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case person, team
    }

    /// The row of ``Kind/membership``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.common], ids: .natural, bytesMax: Kind.commonBytesMax,
        permissions: .membership, route: Route(to: Topics.team, from: [.common]))
}
