import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import Postgres

/// What a decision adds to the history of an entry's attempts: what was heard of a call, and which call it begins.
///
/// It is for people (`fieldpost trace`): nothing is decided from it.
struct AttemptRecord: Equatable, Sendable {
    /// What came of a call, as `submission.attempt` names it.
    enum Heard: String, Sendable { case record, absent, ambiguous, refused, notProcessed, unknown, notMade }
    enum Begun: String, Sendable { case create, update, delete, find }

    static let detailLengthMax = 500

    var heard: Heard?
    /// The back end's own words, as far as it had any.
    var detail: String?
    var began: Begun?
    /// The span that the decision belongs to.
    var trace: TraceContext?

    /// - Parameter answer: What the decision was made from; `nil`: from no call.
    /// - Returns: `nil` when there is nothing to tell.
    init?(_ decision: SubmissionDecision, heard answer: SubmissionAnswer?, trace: TraceContext?) {
        if let answer { (heard, detail) = Self.told(answer) }
        if case .call(let call) = decision.step { began = Begun(call.action) }
        guard heard != nil || began != nil else { return nil }
        // PostgreSQL's text has no U+0000, which a back end may say.
        detail = detail.map { detail in
            String(String.UnicodeScalarView(detail.unicodeScalars.prefix(Self.detailLengthMax).filter { $0 != "\0" }))
        }
        self.trace = trace
    }

    private static func told(_ answer: SubmissionAnswer) -> (Heard, String?) {
        switch answer {
        case .record(let record), .successor(let record): (.record, record.status.rawValue)
        case .absent: (.absent, nil)
        case .ambiguous(let count): (.ambiguous, "\(count) records carry the marker")
        case .refused(let messages): (.refused, messages.joined(separator: "; "))
        case .notProcessed(let reason, _): (.notProcessed, reason)
        case .unknown(let reason, _, _): (.unknown, reason)
        case .notMade: (.notMade, nil)
        }
    }
}

extension AttemptRecord.Begun {
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
    /// The columns of a ledger's write that are for its history; a row that adds nothing to it has neither of the
    /// first two.
    struct AttemptColumns {
        var heard = BinaryArray(of: String.self)
        var began = BinaryArray(of: String.self)
        var details = BinaryArray(of: String.self)
        var traces = BinaryArray(of: String.self)

        mutating func append(_ record: AttemptRecord?) {
            heard.append(record?.heard?.rawValue)
            began.append(record?.began?.rawValue)
            details.append(record?.detail)
            traces.append(record?.trace?.text)
        }
    }

    /// What was heard of entries whose ledgers go.
    struct LastAttempt {
        let entry: UUID
        let realm: Int32
        let version: Int64
        let editPosition: Int64
        let record: AttemptRecord
        let decision: Int
    }

    static func keep(_ attempts: [LastAttempt], in environment: EnvironmentID) -> Statement {
        var columns = AttemptColumns()
        for attempt in attempts { columns.append(attempt.record) }
        return """
            INSERT INTO submission.attempt (environment_id, entry_id, version, realm_id, edit_position, heard, detail,
                traceparent)
            SELECT \(environment.rawValue), i.entry_id, i.version, i.realm_id, i.edit_position, i.heard, i.detail,
                i.traceparent
            FROM unnest(\(attempts.map(\.entry)), \(attempts.map(\.version)), \(attempts.map(\.realm)),
                \(attempts.map(\.editPosition)), \(columns.heard), \(columns.details), \(columns.traces),
                \(attempts.map { Int32($0.decision) }))
                AS i(entry_id, version, realm_id, edit_position, heard, detail, traceparent, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ON CONFLICT DO NOTHING
            """
    }
}
