public import Essentials

/// Fields of an `Appointment` object: an event in a person's calendar. In the person's own realm; copies for the people
/// it is shared with are in ``RealmPath/share(_:)`` under the same id.
public struct Appointment: Codable, Equatable, Sendable {
    /// The start.
    public var when: Timestamp
    /// The duration in minutes, from 0 to `Int32.max`.
    public var durationMinutes: Int
    /// The subject.
    public var why: String

    /// Creates the fields of an appointment.
    public init(when: Timestamp, durationMinutes: Int, why: String) {
        self.when = when
        self.durationMinutes = durationMinutes
        self.why = why
    }
}

extension Appointment: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case when, durationMinutes, why
    }

    package var objection: String? {
        (0...Int(Int32.max)).contains(durationMinutes)
            ? nil : "'durationMinutes' must be from 0 to \(Int32.max)"
    }

    /// The row of ``Kind/appointment``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .share], route: Route(to: Topics.share, from: [.user, .share]))
}

/// Fields of a `Note` object: a person's note or to-do item. In the person's own realm; copies for the people it is
/// shared with are in ``RealmPath/share(_:)`` under the same id.
public struct Note: Codable, Equatable, Sendable {
    /// The title.
    public var title: String
    /// The text.
    public var body: String
    /// Whether the note is a to-do item.
    public var isTask: Bool
    /// Whether the to-do item is done; ignored if ``isTask`` is false.
    public var isDone: Bool

    /// Creates the fields of a note.
    public init(title: String, body: String = "", isTask: Bool = false, isDone: Bool = false) {
        self.title = title
        self.body = body
        self.isTask = isTask
        self.isDone = isDone
    }

    /// Reads the fields; `body` defaults to the empty text, `isTask` and `isDone` to false.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        title = try container.decode(String.self, forKey: .title)
        body = try container.decodeIfPresent(String.self, forKey: .body) ?? ""
        isTask = try container.decodeIfPresent(Bool.self, forKey: .isTask) ?? false
        isDone = try container.decodeIfPresent(Bool.self, forKey: .isDone) ?? false
    }
}

extension Note: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case title, body, isTask, isDone
    }

    /// The row of ``Kind/note``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .share], route: Route(to: Topics.share, from: [.user, .share]))
}
