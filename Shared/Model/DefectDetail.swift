public import Essentials

/// The result of a ``DefectCommand`` that reads from the tracker. It has the members that its operation reads; the
/// others are `nil`.
public struct DefectDetail: Codable, Equatable, Sendable {
    /// A field of a record, or of the form of an action.
    public struct Field: Codable, Equatable, Sendable {
        /// Whether the field is edited.
        public enum Requiredness: String, Codable, CaseIterable, Sendable {
            /// The field must have a value.
            case mandatory
            /// The field may be empty.
            case optional
            /// The field cannot be edited.
            case readOnly
        }

        /// The tracker's name of the field, such as `Headline`.
        public var name: String
        /// The tracker's type of the field, such as `SHORT_STRING`; `nil` if the tracker does not state it.
        public var type: String?
        /// Whether the field is edited: in a form by its action, otherwise of the record itself.
        public var requiredness: Requiredness
        /// The value, empty if the field has none; `nil` if it cannot be read.
        public var value: String?
        /// Whether ``value`` is only the beginning of the value; `nil` if it is complete.
        public var isTruncated: Bool?
        /// With ``DefectCommand/Operation/form``: the allowed values, empty for a field without a list; `nil` if they
        /// were not read.
        public var choices: [String]?

        /// Creates a field.
        public init(
            name: String, type: String? = nil, requiredness: Requiredness, value: String?, isTruncated: Bool? = nil,
            choices: [String]? = nil
        ) {
            self.name = name
            self.type = type
            self.requiredness = requiredness
            self.value = value
            self.isTruncated = isTruncated
            self.choices = choices
        }
    }

    /// An action that the record's state allows.
    public struct Action: Codable, Equatable, Sendable {
        /// The operation of a command with this action: ``DefectCommand/Operation/changeState``,
        /// ``DefectCommand/Operation/modify`` or ``DefectCommand/Operation/delete``.
        public var operation: DefectCommand.Operation
        /// The name of the action, as in ``DefectCommand/actionName``.
        public var name: String
        /// The state that a change of state leads to.
        public var state: String?

        /// Creates an action.
        public init(operation: DefectCommand.Operation, name: String, state: String? = nil) {
            self.operation = operation
            self.name = name
            self.state = state
        }
    }

    /// A query or a folder of the person's workspace in the tracker.
    public struct WorkspaceItem: Codable, Equatable, Sendable {
        /// The tracker's id of the item, as in ``DefectCommand/query`` and ``DefectCommand/folder``.
        public var id: String
        /// The name of the item.
        public var name: String
        /// The name of the folder that contains it, such as `Personal Queries`.
        public var folder: String
        /// Whether it is a folder; `nil` for a query.
        public var isFolder: Bool?

        /// Creates an item.
        public init(id: String, name: String, folder: String, isFolder: Bool? = nil) {
            self.id = id
            self.name = name
            self.folder = folder
            self.isFolder = isFolder
        }
    }

    /// The time at which the detail was read.
    public var readAt: Timestamp?
    /// With ``DefectCommand/Operation/read`` and ``DefectCommand/Operation/form``: the fields, in the tracker's order.
    public var fields: [Field]?
    /// With ``DefectCommand/Operation/read``: the actions that the record's state allows.
    public var actions: [Action]?
    /// With ``DefectCommand/Operation/queries``: the queries and folders.
    public var items: [WorkspaceItem]?
    /// With ``DefectCommand/Operation/runQuery``: the names of the query's columns, in the order of a row's values.
    public var columns: [String]?
    /// With ``DefectCommand/Operation/runQuery``: the rows, each with a value for each column.
    public var rows: [[String]]?
    /// With ``DefectCommand/Operation/runQuery``: ``DefectCommand/fromRow`` of the next page; `nil` at the end.
    public var nextRow: Int?

    /// Creates a detail.
    public init(readAt: Timestamp? = nil) { self.readAt = readAt }
}
