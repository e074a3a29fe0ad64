public import Essentials
public import FoundationEssentials

/// Fields of a `FieldTask` object: a piece of work. The master is in `/manager`, a copy in its team's realm.
public struct FieldTask: Codable, Equatable, Sendable {
    /// What is to be done, in a line.
    public var title: String
    /// What is to be done, at length.
    public var taskDescription: String?
    /// When it is to be done by.
    public var dueDate: Timestamp?
    /// Whether it is done; a member of its team may say so.
    public var isCompleted: Bool
    /// When it was done; written together with ``isCompleted``.
    public var completionDate: Timestamp?
    /// The id of the `Person` who is to do it.
    public var assignee: UUID?
    /// The id of the `Team` that is to do it.
    public var team: UUID?
    /// The blob of its picture.
    public var image: UUID?

    /// A task.
    public init(
        title: String, taskDescription: String? = nil, dueDate: Timestamp? = nil, isCompleted: Bool = false,
        completionDate: Timestamp? = nil, assignee: UUID? = nil, team: UUID? = nil, image: UUID? = nil
    ) {
        self.title = title
        self.taskDescription = taskDescription
        self.dueDate = dueDate
        self.isCompleted = isCompleted
        self.completionDate = completionDate
        self.assignee = assignee
        self.team = team
        self.image = image
    }

    /// Reads the fields; without `isCompleted` it is not done.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        title = try container.decode(String.self, forKey: .title)
        taskDescription = try container.decodeIfPresent(String.self, forKey: .taskDescription)
        dueDate = try container.decodeIfPresent(Timestamp.self, forKey: .dueDate)
        isCompleted = try container.decodeIfPresent(Bool.self, forKey: .isCompleted) ?? false
        completionDate = try container.decodeIfPresent(Timestamp.self, forKey: .completionDate)
        assignee = try container.decodeIfPresent(UUID.self, forKey: .assignee)
        team = try container.decodeIfPresent(UUID.self, forKey: .team)
        image = try container.decodeIfPresent(UUID.self, forKey: .image)
    }
}

extension FieldTask: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case title, taskDescription, dueDate, isCompleted, completionDate, assignee, team, image
    }

    /// The row of ``Kind/fieldTask``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user, .manager, .team])
}
