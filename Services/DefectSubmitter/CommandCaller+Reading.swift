import BackendProtocol
import Compass
import Essentials
import Model

/// Reads for display: records, forms, choices and queries. Nothing is saved.
extension CommandCaller {
    /// Reads without an edit session.
    func read(_ request: DetailRequest) async throws(BackendError) -> ActionResult {
        var content = DetailContent(readAt: .now())
        switch request {
        case .record(let id):
            guard let record = try await tracker.record(id) else { return .refused(["Record \(id) does not exist"]) }
            content.add(try await tracker.recordType().actions, in: record.values[ComparisonRule.state] ?? "")
            content.add(record.fields)
        case .folder(let id):
            guard let folders = try await tracker.folders(in: id) else {
                return .refused(["Folder \(id ?? "") does not exist"])
            }
            content.add(folders)
        case .rows(let query, let first):
            guard let page = try await tracker.page(first / QueryPage.rowsMax + 1, ofQuery: query) else {
                return .refused(["Query \(query) does not exist"])
            }
            content.add(page, from: first)
        }
        return .detail(content.detail, messages: content.messages)
    }

    /// Returns the record after a conflict, so that the person can make another decision; `nil` if it cannot be read,
    /// or if the command leaves no space for it.
    func currentDetail(of job: Job) async -> DefectDetail? {
        guard ComparisonRule.leavesSpaceForDetail(job.command), !deadline.hasPassed else { return nil }
        do throws(BackendError) {
            guard case .detail(let detail, _) = try await read(.record(job.record)) else { return nil }
            return detail
        } catch {
            return nil
        }
    }

    /// Reads choices, and a form's fields, in an edit session, and ends the session.
    ///
    /// - Parameter session: The record as it is in the session.
    func readSession(_ job: Job, _ session: Record?) async throws(BackendError) -> ActionResult {
        let named = job.command.choicesOf
        guard job.command.operation == .form, let session else {
            let lists = try await lists(of: named, job.record, ChoiceLists())
            try await revert(job.record)
            return .choices(lists.choices, messages: lists.messages)
        }
        var content = DetailContent(readAt: .now())
        content.add(session.fields, bytesMax: DetailContent.formFieldsBytesMax)
        let editable = session.fields.filter { $0.requiredness != .readOnly }.map(\.name)
        let names = named.isEmpty ? Array(editable.prefix(DefectCommand.choicesOfCountMax)) : named
        content.add(try await lists(of: names, job.record, ChoiceLists(bytesMax: content.bytesLeft)))
        try await revert(job.record)
        if named.isEmpty { content.reportUnreadLists(editable.count - names.count) }
        return .detail(content.detail, messages: content.messages)
    }

    private func lists(
        of names: [String], _ record: String, _ empty: ChoiceLists
    ) async throws(BackendError) -> ChoiceLists {
        var lists = empty
        for name in names where lists.choices[name] == nil {
            try deadline.check()
            guard let field = try await tracker.field(name, of: record) else { continue }
            lists.add(field.choices ?? [], of: name)
        }
        return lists
    }
}
