import BackendProtocol
import Essentials
import Foundation
import Model

/// An adapter for Acme.
///
/// A person's `reference` needs `employee`, their name in Acme. The marker at the end of the note identifies a record,
/// because a row has no field for a foreign key.
struct AcmeBackend: TimeBackend {
    /// Sends a call to Acme: over HTTP, or to the emulator of the tests.
    let transport: @Sendable (AcmeCall) async throws -> AcmeResponse

    var capabilities: BackendCapabilities {
        BackendCapabilities(approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 60)
    }

    /// Returns one template, "Work", with one choice, "Task": any of Acme's tasks.
    func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        let root = Identified(id: .acme(.root), fields: ReportingTreeNode(name: "Tasks"))
        let nodes = try await send(.tasks).tasks.map { task in
            Identified(
                id: .acme(.task, task.number),
                fields: ReportingTreeNode(referenceId: "\(task.number)", name: task.name, parent: root.id))
        }
        let context = Identified(
            id: .acme(.context),
            fields: ReportingContext(
                name: "Task", required: true,
                sections: [ReportingContext.Section(name: "All", rootNode: root.id)]))
        let template = Identified(
            id: .acme(.template),
            fields: ReportingTemplate(name: "Work", type: "task", reportingContexts: [context.id]))
        return ReportingData(nodes: [root] + nodes, contexts: [context], templates: [template])
    }

    func entries(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> [BackendEntry] {
        try await records(of: person, from: from, through: through).completeEntries()
    }

    /// Returns the records of the days. A row whose day cannot be parsed is unreadable on every day.
    func records(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> BackendRecords {
        var records = BackendRecords(entries: [])
        for row in try await rows(of: person) {
            guard let entry = BackendEntry(row) else {
                records.unreadable.append(row.unreadable)
                continue
            }
            if from <= entry.day, entry.day <= through { records.entries.append(entry) }
        }
        return records
    }

    func create(_ submission: Submission) async throws(BackendError) -> String {
        try await save(submission, as: 0)
    }

    func update(_ id: String, to submission: Submission) async throws(BackendError) -> String {
        try await save(submission, as: try number(id))
    }

    func delete(_ id: String, of person: BackendPerson, before deadline: WriteDeadline) async throws(BackendError) {
        _ = try await send(.remove(row: try number(id), employee: try employee(person)), before: deadline)
    }

    func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry? {
        guard let row = try await rows(of: person).first(where: { "\($0.number)" == id }) else { return nil }
        guard let entry = BackendEntry(row) else {
            // `nil` would mean that the record does not exist.
            throw .notProcessed(reason: "a record cannot be read: \(row.unreadable)", retryAfter: nil)
        }
        return entry
    }

    func lookUp(marker: String, of person: BackendPerson, on day: Day) async throws(BackendError) -> [BackendEntry] {
        try await entries(of: person, from: day, through: day).filter { $0.marker == marker }
    }

    private func rows(of person: BackendPerson) async throws(BackendError) -> [AcmeRow] {
        try await send(.rows(employee: try employee(person))).rows
    }

    private func save(_ submission: Submission, as number: Int) async throws(BackendError) -> String {
        guard let task = submission.references["Task"].flatMap({ Int($0) }) else {
            throw .refused(["Task is missing"])
        }
        let row = AcmeRow(
            number: number, employee: try employee(submission.person), day: "\(submission.day)", task: task,
            note: EntryMarker.note(text: submission.text, marker: submission.marker),
            minutes: (submission.durationSeconds + 30) / 60)
        guard let saved = try await send(.save(row), before: submission.before).rows.first else {
            throw .outcomeUnknown(reason: "a response without the row")
        }
        return "\(saved.number)"
    }

    private func employee(_ person: BackendPerson) throws(BackendError) -> String {
        guard let employee = person.reference["employee"] else {
            throw .refused(["\(person.email) is not an employee of Acme"])
        }
        return employee
    }

    private func number(_ id: String) throws(BackendError) -> Int {
        guard let number = Int(id) else { throw .refused(["\(id) is not a row number of Acme"]) }
        return number
    }

    /// Sends a call to Acme and classifies each failure by whether Acme may have processed the call.
    ///
    /// - Parameter deadline: Deadline of a write; `nil` for a read.
    private func send(
        _ call: AcmeCall, before deadline: WriteDeadline? = nil
    ) async throws(BackendError) -> AcmeResponse {
        let response: AcmeResponse
        try deadline?.check()  // checked right before the call is sent
        do {
            response = try await transport(call)
        } catch is AcmeUnreachable {
            throw .notProcessed(reason: "Acme is unreachable", retryAfter: nil)
        } catch {
            throw Self.failure("no response: \(error)", isWrite: deadline != nil)
        }
        if response.status == 200 { return response }
        throw Self.error(of: response, isWrite: deadline != nil)
    }

    private static func error(of response: AcmeResponse, isWrite: Bool) -> BackendError {
        let wait = response.retryAfter.map { Duration.seconds($0) }
        return switch response.status {
        case 401, 403: .unauthorized(reason: response.text)
        case 408, 429: .notProcessed(reason: response.text, retryAfter: wait)
        // Only a write is refused: a refusal makes the entry invalid.
        case 400..<500 where isWrite: .refused([response.text])
        case 400..<500: .notProcessed(reason: response.text, retryAfter: wait)
        default: failure(response.text, retryAfter: wait, isWrite: isWrite)
        }
    }

    /// Returns the error of a call that Acme may have processed, which matters for a write only.
    private static func failure(_ reason: String, retryAfter: Duration? = nil, isWrite: Bool) -> BackendError {
        isWrite
            ? .outcomeUnknown(reason: reason, retryAfter: retryAfter)
            : .notProcessed(reason: reason, retryAfter: retryAfter)
    }
}

extension BackendEntry {
    /// Creates a record from a row; `nil` if its day cannot be parsed.
    fileprivate init?(_ row: AcmeRow) {
        guard let day = Day(row.day) else { return nil }
        let (text, marker) = EntryMarker.split(note: row.note)
        self.init(
            id: "\(row.number)", marker: marker, day: day, durationSeconds: row.minutes * 60, text: text,
            status: row.isApproved ? .approved : .released, references: ["Task": "\(row.task)"])
    }
}

extension AcmeRow {
    /// The row's description for an operator if its day cannot be parsed.
    fileprivate var unreadable: UnreadableRecord {
        UnreadableRecord(list: "rows", id: "\(number)", reason: "'\(day)' is not a day")
    }
}

extension UUID {
    fileprivate enum ObjectKind: UInt8 { case root, context, template, task }

    /// Derives an id from Acme's own, so that reading again changes nothing.
    fileprivate static func acme(_ kind: ObjectKind, _ number: Int = 0) -> UUID {
        func byte(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: number >> (8 * index)) }
        return UUID(
            uuid: (
                0xac, 0x3e, 0, 0, 0, 0, 0x80, 0, 0x80, kind.rawValue,
                byte(5), byte(4), byte(3), byte(2), byte(1), byte(0)
            ))
    }
}
