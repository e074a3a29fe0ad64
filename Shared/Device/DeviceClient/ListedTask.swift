public import Essentials
public import FoundationEssentials
import Model

/// A task as listed. Its other fields are available by its address.
///
/// Invalid fields are treated as absent, and the task is listed nevertheless: an unlisted task would not be done.
public struct ListedTask: Equatable, Sendable {
    /// The address of the master or the copy.
    public let address: ObjectAddress
    /// The title; `nil` if it is missing.
    public let title: String?
    /// The time by which the task is due.
    public let dueDate: Timestamp?
    /// Whether it is completed.
    public let isCompleted: Bool
    /// The time of completion; `nil` while it is not completed.
    public let completionDate: Timestamp?
    /// The id of the assigned `Person`; `nil` if any member of the team can do it.
    public let assignee: UUID?
    /// The id of the assigned `Team`.
    public let team: UUID?

    init(at address: ObjectAddress, _ held: DeviceObject) {
        let fields = held.json
        self.address = address
        title = fields?.text(of: "title")
        dueDate = fields?.timestamp(of: "dueDate")
        isCompleted = fields?.isTrue("isCompleted") ?? false
        completionDate = isCompleted ? fields?.timestamp(of: "completionDate") : nil
        assignee = fields?.id(of: "assignee")
        team = fields?.id(of: "team")
    }

    /// The task's id, which the master and the copy share.
    public var id: UUID { address.object.id }

    /// Whether it is not completed and was due before `now`.
    public func isOverdue(at now: Timestamp) -> Bool { !isCompleted && dueDate.map { $0 < now } ?? false }

    /// Returns all tasks of a realm, unordered.
    static func all(in realm: RealmPath, of contents: [RealmPath: RealmContent]) -> [ListedTask] {
        (contents[realm] ?? [:]).objects(of: .fieldTask).map { id, held in
            ListedTask(at: ObjectAddress(realm, ObjectID(kind: .fieldTask, id: id)), held)
        }
    }
}

extension DeviceObject {
    /// The fields; `nil` if they are not a JSON object.
    var json: JSONObject? { try? JSONObject(fields) }
}

extension JSONObject {
    /// Returns the value of a timestamp field; `nil` if it is absent or invalid.
    func timestamp(of key: String) -> Timestamp? { text(of: key).flatMap { Timestamp($0) } }

    /// Returns the value of a number field; `nil` if it is absent or invalid.
    func number(of key: String) -> Double? { value(of: key).flatMap { Double(String(decoding: $0, as: UTF8.self)) } }
}
