public import Essentials
public import FoundationEssentials
import Model

/// A task as a list has it. The rest of it is under its address.
///
/// What cannot be understood of a task is as if it were not written, and the task is listed all the same: what nobody
/// sees, nobody does.
public struct ListedTask: Equatable, Sendable {
    /// Where the task is held: the master, or the copy.
    public let address: ObjectAddress
    /// What is to be done; `nil` when the task does not say.
    public let title: String?
    /// When it is to be done by.
    public let dueDate: Timestamp?
    /// Whether it is done.
    public let isCompleted: Bool
    /// When it was done; `nil` while it is not, whatever was written before it was begun again.
    public let completionDate: Timestamp?
    /// The id of the `Person` who is to do it; `nil`: whoever of the team takes it.
    public let assignee: UUID?
    /// The id of the `Team` that is to do it.
    public let team: UUID?

    init(at address: ObjectAddress, _ held: HeldObject) {
        let fields = held.json
        self.address = address
        title = fields?.text(of: "title")
        dueDate = fields?.timestamp(of: "dueDate")
        isCompleted = fields?.isTrue("isCompleted") ?? false
        completionDate = isCompleted ? fields?.timestamp(of: "completionDate") : nil
        assignee = fields?.id(of: "assignee")
        team = fields?.id(of: "team")
    }

    /// The task's id, which its master and its copy have in common.
    public var id: UUID { address.object.id }

    /// Whether it is not done, and was due before this moment.
    public func isOverdue(at now: Timestamp) -> Bool { !isCompleted && dueDate.map { $0 < now } ?? false }

    /// All tasks of a realm, in no order.
    static func all(in realm: RealmPath, of contents: [RealmPath: RealmContent]) -> [ListedTask] {
        (contents[realm] ?? [:]).objects(of: .fieldTask).map { id, held in
            ListedTask(at: ObjectAddress(realm, ObjectID(kind: .fieldTask, id: id)), held)
        }
    }
}

extension HeldObject {
    /// The fields, in which members are found; `nil` when they are no JSON object.
    var json: JSONObject? { try? JSONObject(fields) }
}

extension JSONObject {
    /// The value of a field that is a moment; `nil` when it is absent or something else.
    func timestamp(of key: String) -> Timestamp? { text(of: key).flatMap { Timestamp($0) } }

    /// The value of a field that is a number; `nil` when it is absent or something else.
    func number(of key: String) -> Double? { value(of: key).flatMap { Double(String(decoding: $0, as: UTF8.self)) } }
}
