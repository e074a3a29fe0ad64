public import Essentials

/// Fields of an `Appointment` object: something a person does at a time. In the person's own realm; copies for those it
/// is shared with are in ``RealmPath/share(_:)``, under the same id.
public struct Appointment: Codable, Equatable, Sendable {
    /// When it begins.
    public var when: Timestamp
    /// How long it takes, in minutes; from 0 to `Int32.max`.
    public var durationMinutes: Int
    /// What it is about.
    public var why: String

    /// An appointment.
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

/// Fields of a `Note` object: what a person writes down, perhaps to be done. In the person's own realm; copies for
/// those it is shared with are in ``RealmPath/share(_:)``, under the same id.
public struct Note: Codable, Equatable, Sendable {
    /// What it is called.
    public var title: String
    /// What it says.
    public var body: String
    /// Whether it is something to do.
    public var isTask: Bool
    /// Whether it is done; of no account when it is nothing to do.
    public var isDone: Bool

    /// A note.
    public init(title: String, body: String = "", isTask: Bool = false, isDone: Bool = false) {
        self.title = title
        self.body = body
        self.isTask = isTask
        self.isDone = isDone
    }

    /// Reads the fields; without `body` it is empty, without `isTask` and `isDone` it is neither.
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
