import BackendProtocol
import Essentials
import Foundation
import Model

/// The adapter for Acme.
///
/// A person's `reference` needs `employee`, Acme's name for them. The marker at the end of the note identifies a
/// record, because a row has no field for a foreign key.
struct AcmeBackend: TimeBackend {
    /// Sends a call to Acme. A real adapter sends HTTP here, with a timeout per call.
    let send: @Sendable (AcmeCall) async throws -> AcmeAnswer

    var capabilities: BackendCapabilities {
        BackendCapabilities(approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: 60)
    }

    /// One template, "Work", with one choice, "Task": any of Acme's tasks.
    func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        let root = Identified(id: .acme(.root), fields: ReportingTreeNode(name: "Tasks"))
        let nodes = try await ask(.tasks).tasks.map { task in
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
        try await records(of: person).filter { from <= $0.day && $0.day <= through }
    }

    func create(_ submission: Submission) async throws(BackendError) -> String {
        try await save(submission, as: 0)
    }

    func update(_ id: String, to submission: Submission) async throws(BackendError) -> String {
        try await save(submission, as: try number(id))
    }

    func delete(_ id: String, of person: BackendPerson, before deadline: WriteDeadline) async throws(BackendError) {
        _ = try await ask(.remove(row: try number(id), employee: try employee(person)), before: deadline)
    }

    func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry? {
        try await records(of: person).first { $0.id == id }
    }

    func lookUp(marker: String, of person: BackendPerson, on day: Day) async throws(BackendError) -> [BackendEntry] {
        try await entries(of: person, from: day, through: day).filter { $0.marker == marker }
    }

    private func records(of person: BackendPerson) async throws(BackendError) -> [BackendEntry] {
        try await ask(.rows(employee: try employee(person))).rows.compactMap(BackendEntry.init)
    }

    private func save(_ submission: Submission, as number: Int) async throws(BackendError) -> String {
        guard let task = submission.references["Task"].flatMap({ Int($0) }) else {
            throw .refused(["Task is missing"])
        }
        let row = AcmeRow(
            number: number, employee: try employee(submission.person), day: "\(submission.day)", task: task,
            note: EntryMarker.note(text: submission.text, marker: submission.marker),
            minutes: (submission.durationSeconds + 30) / 60)
        guard let saved = try await ask(.save(row), before: submission.before).rows.first else {
            throw .outcomeUnknown(reason: "an answer without the row")
        }
        return "\(saved.number)"
    }

    private func employee(_ person: BackendPerson) throws(BackendError) -> String {
        guard let employee = person.reference["employee"] else {
            throw .refused(["\(person.email) is nobody at Acme"])
        }
        return employee
    }

    private func number(_ id: String) throws(BackendError) -> Int {
        guard let number = Int(id) else { throw .refused(["\(id) is no row of Acme's"]) }
        return number
    }

    /// Sends a call to Acme and classifies each failure by whether Acme may have processed the call.
    ///
    /// - Parameter deadline: Deadline of a write; `nil` for a read.
    private func ask(_ call: AcmeCall, before deadline: WriteDeadline? = nil) async throws(BackendError) -> AcmeAnswer {
        func unclear(_ reason: String) -> BackendError {
            deadline == nil ? .notProcessed(reason: reason, retryAfter: nil) : .outcomeUnknown(reason: reason)
        }
        let answer: AcmeAnswer
        try deadline?.check()  // checked right before the call is sent
        do {
            answer = try await send(call)
        } catch is AcmeNotReached {
            throw .notProcessed(reason: "Acme is not reached", retryAfter: nil)
        } catch {
            throw unclear("no answer: \(error)")
        }
        switch answer.status {
        case 200: return answer
        case 401, 403: throw .unauthorized(reason: answer.text)
        case 429: throw .notProcessed(reason: answer.text, retryAfter: answer.retryAfter.map { .seconds($0) })
        case 400..<500: throw .refused([answer.text])
        default: throw unclear(answer.text)
        }
    }
}

extension BackendEntry {
    /// - Returns: `nil` for a row whose day cannot be read.
    fileprivate init?(_ row: AcmeRow) {
        guard let day = Day(row.day) else { return nil }
        let (text, marker) = EntryMarker.split(note: row.note)
        self.init(
            id: "\(row.number)", marker: marker, day: day, durationSeconds: row.minutes * 60, text: text,
            status: row.isApproved ? .approved : .released, references: ["Task": "\(row.task)"])
    }
}

extension UUID {
    fileprivate enum Sort: UInt8 { case root, context, template, task }

    /// An id made of Acme's own: always the same, so that reading again changes nothing.
    fileprivate static func acme(_ sort: Sort, _ number: Int = 0) -> UUID {
        func byte(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: number >> (8 * index)) }
        return UUID(
            uuid: (
                0xac, 0x3e, 0, 0, 0, 0, 0x80, 0, 0x80, sort.rawValue,
                byte(5), byte(4), byte(3), byte(2), byte(1), byte(0)
            ))
    }
}
