import BackendProtocol
import Essentials
import Model

/// Makes a call and reads the record back: the status of an entry comes from a record, never from the response to a
/// write.
struct SubmissionCaller: Sendable {
    let backend: any TimeBackend
    /// Days before and after an entry's days that a lookup of a moved record includes.
    private static let movedDaysMax = 31

    /// - Parameter before: The deadline for sending a write; after it, the result is `notMade`.
    func call(
        _ call: SubmissionCall, marker: String, person: BackendPerson, before: WriteDeadline
    ) async -> SubmissionResult {
        do throws(BackendError) {
            switch call.action {
            case .create(let desired):
                return await readBack(try await backend.create(desired.submission(marker, person, before)), person)
            case .update(let id, let desired):
                let written: String
                do throws(BackendError) {
                    written = try await backend.update(id, to: desired.submission(marker, person, before))
                } catch .refused(let messages) {
                    return try await refusal(messages, of: id, marker, person)
                }
                return await readBack(written, person)
            case .delete(let id):
                do throws(BackendError) {
                    try await backend.delete(id, of: person, before: before)
                } catch .refused(let messages) {
                    return try await refusal(messages, of: id, marker, person)
                }
                return await readBack(id, person, mayBeAbsent: true)
            case .find(let id, let days): return try await find(id, days, marker, person)
            }
        } catch {
            return SubmissionResult(error, recordID: nil)
        }
    }

    /// Reads the record of a completed write. If it cannot be read now, it is looked up later by its id.
    private func readBack(_ id: String, _ person: BackendPerson, mayBeAbsent: Bool = false) async -> SubmissionResult {
        do throws(BackendError) {
            if let record = try await backend.readBack(id, of: person) { return .record(record) }
            return mayBeAbsent ? .absent : .unknown(reason: "record \(id) is not readable yet", recordID: id)
        } catch {
            var retryAfter: Duration?
            if case .notProcessed(_, let wait) = error { retryAfter = wait }
            return .unknown(reason: "the record cannot be read back: \(error)", recordID: id, retryAfter: retryAfter)
        }
    }

    /// Handles a refused write. If another user deleted or replaced the record, that is the result.
    private func refusal(
        _ messages: [String], of id: String, _ marker: String, _ person: BackendPerson
    ) async throws(BackendError) -> SubmissionResult {
        switch try await find(id, [], marker, person) {
        case .record(let record) where record.id == id: .refused(messages)
        case .record(let successor), .successor(let successor): .successor(successor)
        case .absent: .absent
        case .ambiguous(let ids): .ambiguous(ids)
        case .refused, .notProcessed, .unknown, .notMade: .refused(messages)
        }
    }

    private func find(
        _ id: String?, _ days: [Day], _ marker: String, _ person: BackendPerson
    ) async throws(BackendError) -> SubmissionResult {
        var days = Set(days)
        if let id, let record = try await backend.readBack(id, of: person) {
            if record.status != .changed, record.status != .cancelled { return .record(record) }
            // If there is a successor, another user created it, and it is on the record's day.
            days.insert(record.day)
        }
        var records: [String: BackendEntry] = [:]
        for day in days.sorted() {
            for record in try await backend.lookUp(marker: marker, of: person, on: day) { records[record.id] = record }
        }
        if records.isEmpty, let first = days.min(), let last = days.max() {
            // Before another create: another user may have moved the record to another day.
            let from = first.adding(days: -Self.movedDaysMax)
            let through = last.adding(days: Self.movedDaysMax)
            for record in try await backend.entries(of: person, from: from, through: through)
            where record.marker == marker { records[record.id] = record }
        }
        guard let first = records.values.first else { return .absent }
        return records.count == 1 ? .record(first) : .ambiguous(records.keys.sorted())
    }
}

extension SubmissionResult {
    init(_ error: BackendError, recordID: String?) {
        self =
            switch error {
            case .refused(let messages): .refused(messages)
            case .notProcessed(let reason, let retryAfter): .notProcessed(reason: reason, retryAfter: retryAfter)
            case .outcomeUnknown(let reason, let retryAfter):
                .unknown(reason: reason, recordID: recordID, retryAfter: retryAfter)
            case .unauthorized(let reason):
                .notProcessed(reason: "the back end rejects Fieldpost's own credentials: \(reason)", retryAfter: nil)
            case .deadlineExceeded: .notMade
            }
    }
}

extension DesiredRecord {
    func submission(_ marker: String, _ person: BackendPerson, _ before: WriteDeadline) -> Submission {
        Submission(
            marker: marker, person: person, day: day, durationSeconds: durationSeconds, text: text,
            references: references, before: before)
    }
}
