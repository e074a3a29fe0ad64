import Essentials
public import FoundationEssentials
public import Model

/// The details of defects that a device displays, also while it is offline: the newest one for each request.
///
/// A detail is the result of a `DefectCommand` that reads, or the record after a conflict.
public struct DefectDetails: Equatable, Sendable {
    /// A request for a detail: what a command reads.
    public struct Request: Hashable, Sendable {
        /// `form`, `queries`, `read` or `runQuery`.
        public var operation: DefectCommand.Operation
        /// The record; `nil` for a new one, or none.
        public var record: String?
        /// The action of a form.
        public var actionName: String?
        /// The values that a form depends on.
        public var fields: [String: String]
        /// The fields whose choices a form has.
        public var choicesOf: [String]
        /// The folder of queries.
        public var folder: String?
        /// The query.
        public var query: String?
        /// The first row.
        public var fromRow: Int

        /// Creates the request of a command.
        public init(_ command: DefectCommand) {
            operation = command.operation
            record = Self.id(command.record)
            actionName = command.actionName
            fields = command.fields
            choicesOf = command.choicesOf
            folder = Self.id(command.folder)
            query = Self.id(command.query)
            fromRow = command.fromRow ?? 0
        }

        /// Creates the request of all fields of a record.
        public init(record: String) { self.init(DefectCommand(operation: .read, record: record)) }

        private static func id(_ text: String?) -> String? { text.flatMap { $0.isEmpty ? nil : $0 } }
    }

    /// The newest detail of each request, with its time `DefectDetail.readAt`.
    public let details: [Request: DefectDetail]
    /// The requests whose commands are queued or not executed yet.
    public let pending: Set<Request>
    /// The commands whose details are replaced by newer ones: the device deletes them.
    public let superseded: Set<UUID>

    /// Collects the details.
    ///
    /// - Parameters:
    ///   - own: The person's own realm, `/users/{e-mail}`.
    ///   - contents: The shown objects, see ``DeviceState/contents``.
    public init(realm own: RealmPath, in contents: [RealmPath: RealmContent]) {
        var newest: [Request: (order: (Int64, UUID), detail: DefectDetail, isRead: Bool)] = [:]
        var pending: Set<Request> = []
        var superseded: Set<UUID> = []
        for (id, object) in (contents[own] ?? [:]).objects(of: .defectCommand) {
            guard let command = try? object.json?.decoded(as: DefectCommand.self), command.submitRequested else {
                continue
            }
            let isRead = command.operation.hasDetail
            if isRead, command.status == .waiting { pending.insert(Request(command)) }
            guard let detail = command.detail else { continue }
            // A conflict of a change includes the record as it is read.
            let request = isRead ? Request(command) : Request(record: command.record ?? "")
            let order = (detail.readAt?.millisecondsSinceEpoch ?? .min, id)
            guard let other = newest[request] else {
                newest[request] = (order, detail, isRead)
                continue
            }
            let isNewer = order > other.order
            if isNewer ? other.isRead : isRead { superseded.insert(isNewer ? other.order.1 : id) }
            if isNewer { newest[request] = (order, detail, isRead) }
        }
        details = newest.mapValues { $0.detail }
        self.pending = pending
        self.superseded = superseded
    }
}

extension DefectCommand.Operation {
    /// Whether the result of the operation is a detail.
    fileprivate var hasDetail: Bool {
        switch self {
        case .read, .form, .queries, .runQuery: true
        case .create, .modify, .changeState, .delete, .choices: false
        }
    }
}
