public import Essentials
public import FoundationEssentials

/// Fields of a `TaskNote` object: a text, a picture or both, about a task.
///
/// It is in the realm of the task's copy and in `/manager`, under the same id. Its author writes it in one of them;
/// `task-fan-out` maintains the other.
public struct TaskNote: Codable, Equatable, Sendable {
    /// The id of the `FieldTask`; it never changes.
    public var task: UUID
    /// The text; at most 4,000 Unicode scalars.
    public var text: String?
    /// The id of the picture's blob.
    public var image: UUID?
    /// The id of the author's `Person`; on a device, the person's own.
    public var author: UUID
    /// The time at which the author wrote the note, by the device's clock.
    public var writtenAt: Timestamp

    /// Creates the fields of a note; it needs a text or an image.
    public init(task: UUID, text: String? = nil, image: UUID? = nil, author: UUID, writtenAt: Timestamp) {
        self.task = task
        self.text = text
        self.image = image
        self.author = author
        self.writtenAt = writtenAt
    }
}

extension TaskNote: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case task, text, image, author, writtenAt
    }

    /// Maximum length of the text in Unicode scalars.
    package static let textLengthMax = 4_000
    /// Maximum number of a task's notes; `task-fan-out` deletes the oldest ones above it.
    package static let countMax = 200

    package var objection: String? {
        if let text, text.unicodeScalars.count > Self.textLengthMax {
            return "'text' must have at most \(Self.textLengthMax) characters"
        }
        guard text?.isEmpty ?? true, image == nil else { return nil }
        return "a note must have 'text' or 'image'"
    }

    /// The row of ``Kind/taskNote``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .manager, .team, .archive],
        route: Route(to: Topics.task, from: [.manager, .team, .user]))
}
