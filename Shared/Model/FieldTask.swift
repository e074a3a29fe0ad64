public import Essentials
public import FoundationEssentials

/// Fields of a `FieldTask` object: a piece of work.
///
/// The master is in `/manager`. Its one copy, under the same id, is in the realm of its team, or of its assignee when
/// it has no team, made and kept by `task-fan-out`. Whoever does the task writes its *progress* (``isCompleted``,
/// ``completionDate``, ``completedBy``) on the copy; managers write the master, of which all else is its *definition*.
public struct FieldTask: Codable, Equatable, Sendable {
    /// What is to be done, in a line.
    public var title: String
    /// What is to be done, at length.
    public var taskDescription: String?
    /// When it was made.
    public var creationDate: Timestamp?
    /// When it is to be done by.
    public var dueDate: Timestamp?
    /// Where it is to be done.
    public var place: TaskPlace?
    /// Whether it is done.
    public var isCompleted: Bool
    /// When it was done; written together with ``isCompleted``, and of no account without it.
    public var completionDate: Timestamp?
    /// The id of the `Person` who did it; written together with ``isCompleted``, and of no account without it.
    public var completedBy: UUID?
    /// The id of the `Person` who is to do it: a member of the team, if there is one.
    public var assignee: UUID?
    /// The id of the `Team` that is to do it.
    public var team: UUID?
    /// The blob of its picture.
    public var image: UUID?

    /// A task.
    public init(
        title: String, taskDescription: String? = nil, creationDate: Timestamp? = nil, dueDate: Timestamp? = nil,
        place: TaskPlace? = nil, isCompleted: Bool = false, completionDate: Timestamp? = nil,
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

    /// Reads the fields; without `isCompleted` it is not done.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        title = try container.decode(String.self, forKey: .title)
        taskDescription = try container.decodeIfPresent(String.self, forKey: .taskDescription)
        creationDate = try container.decodeIfPresent(Timestamp.self, forKey: .creationDate)
        dueDate = try container.decodeIfPresent(Timestamp.self, forKey: .dueDate)
        place = try container.decodeIfPresent(TaskPlace.self, forKey: .place)
        isCompleted = try container.decodeIfPresent(Bool.self, forKey: .isCompleted) ?? false
        completionDate = try container.decodeIfPresent(Timestamp.self, forKey: .completionDate)
        completedBy = try container.decodeIfPresent(UUID.self, forKey: .completedBy)
        assignee = try container.decodeIfPresent(UUID.self, forKey: .assignee)
        team = try container.decodeIfPresent(UUID.self, forKey: .team)
        image = try container.decodeIfPresent(UUID.self, forKey: .image)
    }
}

/// Where a task is to be done: it belongs to the task, moves with it and is permitted with it. Any part may be absent.
public struct TaskPlace: Codable, Equatable, Sendable {
    /// Degrees north of the equator; together with ``longitude``.
    public var latitude: Double?
    /// Degrees east of Greenwich; together with ``latitude``.
    public var longitude: Double?
    /// What people call it.
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

    enum CodingKeys: String, CodingKey, ClosedNames {
        case latitude, longitude, title, street, city, postalCode, state, countryCode
    }

    /// A place.
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

    /// The names of the fields that make up a task's progress; all others are its definition.
    package static let progressNames = [
        CodingKeys.isCompleted, .completionDate, .completedBy,
    ].map(\.stringValue)

    package var objection: String? {
        guard let place else { return nil }
        guard place != TaskPlace() else {
            return "'place' must say where: by latitude and longitude, title, street, city, postalCode, state or "
                + "countryCode"
        }
        if let code = place.countryCode, code.utf8.count != 2 || !code.utf8.allSatisfy(Self.isLetter) {
            return "'place.countryCode' must be two letters such as DK (ISO 3166-1)"
        }
        guard (place.latitude == nil) == (place.longitude == nil) else {
            return "'place' has a latitude and a longitude, or neither"
        }
        return Location.objection(place.latitude ?? 0, place.longitude ?? 0, in: "place.")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// The row of ``Kind/fieldTask``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .manager, .team, .archive],
        route: Route(to: Topics.task, from: [.manager, .team, .user]))
}
