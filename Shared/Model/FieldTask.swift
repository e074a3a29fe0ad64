public import Essentials
public import FoundationEssentials

/// Fields of a `FieldTask` object: a task.
///
/// The master is in `/manager`. `task-fan-out` maintains its only copy, under the same id, in the realm of its team or,
/// without a team, of its assignee. The assignee or a team member writes the *progress* (``isCompleted``,
/// ``completionDate``, ``completedBy``) in the copy. Managers write the master; its other fields are the *definition*.
public struct FieldTask: Codable, Equatable, Sendable {
    /// The title, in one line.
    public var title: String
    /// A detailed description.
    public var taskDescription: String?
    /// The time of creation.
    public var creationDate: Timestamp?
    /// The time by which the task is due.
    public var dueDate: Timestamp?
    /// The location of the work.
    public var place: TaskLocation?
    /// Whether the task is completed; false if absent.
    public var isCompleted: Bool
    /// The time of completion; written together with ``isCompleted``, and ignored if that is false.
    public var completionDate: Timestamp?
    /// The id of the `Person` who completed it; written together with ``isCompleted``, and ignored if that is false.
    public var completedBy: UUID?
    /// The id of the assigned `Person`: a member of the team, if there is one.
    public var assignee: UUID?
    /// The id of the assigned `Team`.
    public var team: UUID?
    /// The id of the picture's blob.
    public var image: UUID?

    /// Creates the fields of a task.
    public init(
        title: String, taskDescription: String? = nil, creationDate: Timestamp? = nil, dueDate: Timestamp? = nil,
        place: TaskLocation? = nil, isCompleted: Bool = false, completionDate: Timestamp? = nil,
        completedBy: UUID? = nil, assignee: UUID? = nil, team: UUID? = nil, image: UUID? = nil
    ) {
        self.title = title
        self.taskDescription = taskDescription
        self.creationDate = creationDate
        self.dueDate = dueDate
        self.place = place
        self.isCompleted = isCompleted
        self.completionDate = completionDate
        self.completedBy = completedBy
        self.assignee = assignee
        self.team = team
        self.image = image
    }
}

/// The location of a task; stored in the task and subject to its permissions. All fields are optional.
public struct TaskLocation: Codable, Equatable, Sendable {
    /// Degrees north of the equator; together with ``longitude``.
    public var latitude: Double?
    /// Degrees east of Greenwich; together with ``latitude``.
    public var longitude: Double?
    /// The display name.
    public var title: String?
    /// Street and number.
    public var street: String?
    /// City.
    public var city: String?
    /// Postal code.
    public var postalCode: String?
    /// State or province.
    public var state: String?
    /// Two letters (ISO 3166-1).
    public var countryCode: String?

    enum CodingKeys: String, CodingKey, ClosedCodingKeys {
        case latitude, longitude, title, street, city, postalCode, state, countryCode
    }

    /// Creates a location.
    public init(
        latitude: Double? = nil, longitude: Double? = nil, title: String? = nil, street: String? = nil,
        city: String? = nil, postalCode: String? = nil, state: String? = nil, countryCode: String? = nil
    ) {
        self.latitude = latitude
        self.longitude = longitude
        self.title = title
        self.street = street
        self.city = city
        self.postalCode = postalCode
        self.state = state
        self.countryCode = countryCode
    }
}

extension FieldTask: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case title, taskDescription, creationDate, dueDate, place, isCompleted, completionDate, completedBy, assignee
        case team, image
    }

    /// The names of the progress fields; all others are the definition.
    package static let progressNames = [
        CodingKeys.isCompleted, .completionDate, .completedBy,
    ].map(\.stringValue)

    package var objection: String? {
        guard let place else { return nil }
        guard place != TaskLocation() else {
            return "'place' must have latitude and longitude, title, street, city, postalCode, state or "
                + "countryCode"
        }
        if let code = place.countryCode, code.utf8.count != 2 || !code.utf8.allSatisfy(Self.isLetter) {
            return "'place.countryCode' must be two letters such as DK (ISO 3166-1)"
        }
        guard (place.latitude == nil) == (place.longitude == nil) else {
            return "'place' must have both latitude and longitude, or neither"
        }
        return Location.objection(place.latitude ?? 0, place.longitude ?? 0, pathPrefix: "place.")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// The row of ``Kind/fieldTask``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .manager, .team, .archive],
        route: Route(to: Topics.task, from: [.manager, .team, .user]))
}
