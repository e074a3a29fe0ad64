import Essentials
public import FoundationEssentials

/// Fields of a `Team` object, in `/common`. Its tasks are in ``RealmPath/team(_:)``, under the team's id.
public struct Team: Codable, Equatable, Sendable {
    /// What people call it: no other team's name, as ``DisplayName`` compares them, and not invisible.
    public var name: String
    /// What it is for.
    public var teamDescription: String?
    /// Its colour as six hexadecimal digits.
    public var backgroundColor: String?
    /// The blob of its picture.
    public var image: UUID?

    /// A team.
    public init(name: String, teamDescription: String? = nil, backgroundColor: String? = nil, image: UUID? = nil) {
        self.name = name
        self.teamDescription = teamDescription
        self.backgroundColor = backgroundColor
        self.image = image
    }
}

extension Team: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, teamDescription, backgroundColor, image
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

/// Fields of a `Membership` object: a person is in a team. In `/common`.
///
/// An object of its own, because several managers write a team's members at once. Its id is made of both
/// (``id(of:in:)``): there is one per pair, and a person's memberships are neighbours in the order of ids.
public struct Membership: Codable, Equatable, Sendable {
    /// The id of the `Person` object.
    public var person: UUID
    /// The id of the `Team` object.
    public var team: UUID

    /// A membership.
    public init(person: UUID, team: UUID) {
        self.person = person
        self.team = team
    }

    /// The id of the membership of a person in a team: the person's first eight bytes, then the team's last eight.
    public static func id(of person: UUID, in team: UUID) -> UUID { person.paired(with: team) }

    /// The ids among which all of a person's memberships are.
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
