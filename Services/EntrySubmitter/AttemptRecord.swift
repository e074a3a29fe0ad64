import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Postgres

/// A decision's row in the history of an entry's attempts: the result of a call, and the call that the decision starts.
///
/// It is displayed to operators (`fieldpost trace`); no decision depends on it.
struct AttemptRecord: Equatable, Sendable {
    /// The result of a call, as stored in `submission.attempt`.
    enum ResultCode: String, Sendable { case record, absent, ambiguous, refused, notProcessed, unknown, notMade }
    enum Operation: String, Sendable { case create, update, delete, find }

    static let detailLengthMax = 500

    var result: ResultCode?
    /// The back end's own message, if any.
    var detail: String?
    var started: Operation?
    /// The span that the decision belongs to.
    var trace: TraceContext?

    /// - Parameter result: The result that the decision handles; `nil` without a call.
    /// - Returns: `nil` if there is nothing to record.
    init?(_ decision: SubmissionDecision, of result: SubmissionResult?, trace: TraceContext?) {
        if let result { (self.result, detail) = Self.code(of: result) }
        if case .call(let call) = decision.step { started = Operation(call.action) }
        guard self.result != nil || started != nil else { return nil }
        // PostgreSQL's text has no U+0000, which a message may contain.
        detail = detail.map { detail in
            String(String.UnicodeScalarView(detail.unicodeScalars.prefix(Self.detailLengthMax).filter { $0 != "\0" }))
        }
        self.trace = trace
    }

    private static func code(of result: SubmissionResult) -> (ResultCode, String?) {
        switch result {
        case .record(let record), .successor(let record): (.record, record.status.rawValue)
        case .absent: (.absent, nil)
        case .ambiguous(let ids):
            (.ambiguous, "\(ids.count) records carry the marker: \(ids.joined(separator: ", "))")
        case .refused(let messages): (.refused, messages.joined(separator: "; "))
        case .notProcessed(let reason, _): (.notProcessed, reason)
        case .unknown(let reason, _, _): (.unknown, reason)
        case .notMade: (.notMade, nil)
        }
    }
}

extension AttemptRecord.Operation {
    init(_ action: SubmissionCall.Action) {
        self =
            switch action {
            case .create: .create
            case .update: .update
            case .delete: .delete
            case .find: .find
            }
    }
}

extension EntryStore {
    /// The columns of a ledger write for its history. A row without a record has neither result nor operation.
    struct AttemptColumns {
        var results = BinaryArray(of: String.self)
        var operations = BinaryArray(of: String.self)
        var details = BinaryArray(of: String.self)
        var traces = BinaryArray(of: String.self)

        mutating func append(_ record: AttemptRecord?) {
            results.append(record?.result?.rawValue)
            operations.append(record?.started?.rawValue)
            details.append(record?.detail)
            traces.append(record?.trace?.text)
        }
    }

    /// The final result of an entry whose ledger row is removed.
    struct FinalAttempt {
        let entry: UUID
        let realm: Int32
        let version: Int64
        let editPosition: Int64
        let record: AttemptRecord
        let decision: Int
    }

    static func insert(_ attempts: [FinalAttempt], in environment: EnvironmentID) -> Statement {
        var columns = AttemptColumns()
        for attempt in attempts { columns.append(attempt.record) }
        return """
            INSERT INTO submission.attempt (environment_id, entry_id, version, realm_id, edit_position, heard, detail,
                traceparent)
            SELECT \(environment.rawValue), i.entry_id, i.version, i.realm_id, i.edit_position, i.heard, i.detail,
                i.traceparent
            FROM unnest(\(attempts.map(\.entry)), \(attempts.map(\.version)), \(attempts.map(\.realm)),
                \(attempts.map(\.editPosition)), \(columns.results), \(columns.details), \(columns.traces),
                \(attempts.map { Int32($0.decision) }))
                AS i(entry_id, version, realm_id, edit_position, heard, detail, traceparent, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT DO NOTHING
            """
    }
}
