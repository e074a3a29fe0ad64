internal import BackendHTTP
package import BackendProtocol
internal import FoundationEssentials
internal import HTTPClient

/// Records of ``CompassSettings/recordType``.
extension CompassClient {
    /// What can be done with the record type.
    package func recordType() async throws(BackendError) -> RecordType {
        let response = try await connection.read(connection.recordsPath)
        try CompassAnswer.check(response, isWrite: false, connection.account)
        return try HTTPAnswer.decode(RecordTypeBody.self, from: response.body).type(settings.recordType)
    }

    /// A record as it was last committed; `nil` when there is none.
    ///
    /// - Throws: `refused` when the account may not see it.
    package func record(_ id: String) async throws(BackendError) -> Record? {
        guard let response = try await connection.readIfThere(try recordPath(id)) else { return nil }
        return try HTTPAnswer.decode(RecordBody.self, from: response.body).record(id)
    }

    /// A field of a record with what can be chosen for it; in an edit session that the account has open, as it is
    /// there. `nil` when there is no such record or field.
    package func field(_ name: String, of id: String) async throws(BackendError) -> Field? {
        let path = try recordPath(id) + "/fields/" + CompassConnection.segment(name)
        guard let response = try await connection.readIfThere(path) else { return nil }
        return try HTTPAnswer.decode(FieldBody.self, from: response.body).field
    }

    /// Begins to edit a record.
    ///
    /// - Parameters:
    ///   - action: The name of an action of the record type, for one that changes the state.
    ///   - values: What is written into the session at once, so that lists which depend on it can be read.
    /// - Throws: `refused` when there is no such record, or the action cannot be done in its state.
    package func edit(
        _ id: String, action: String? = nil, _ values: [FieldValue] = [], before deadline: WriteDeadline
    ) async throws(BackendError) -> EditSession {
        var query = "?operation=Edit"
        if let action { query += "&actionName=" + URLText.escape(action) }
        let record = try await change("PATCH", try recordPath(id) + query, values, before: deadline)
        return EditSession(client: self, record: record.record(id), action: action)
    }

    /// Begins a new record. It has its id already, and is nobody's to see before it is committed: whoever must not
    /// make it twice writes the id down before ``EditSession/commit(_:before:)``.
    package func create(before deadline: WriteDeadline) async throws(BackendError) -> EditSession {
        let path = connection.recordsPath + "/?operation=Edit"
        let body = try await change("POST", path, [], before: deadline)
        guard let id = body.id else { throw .outcomeUnknown(reason: "a new record without an id") }
        return EditSession(client: self, record: body.record(id), action: nil)
    }

    /// Saves values and ends the edit session of a record, which may be one of an earlier process.
    package func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await change("PATCH", try recordPath(id) + "?operation=Commit", values, before: deadline).record(id)
    }

    /// Ends the account's edit session of a record without saving anything, which may be one of an earlier process. A
    /// record that is not there, or not being edited, is done.
    package func revert(_ id: String) async throws(BackendError) {
        let response = try await connection.write("PATCH", try recordPath(id) + "?operation=Revert", Array("{}".utf8))
        if CompassAnswer.isAbsent(response) { return }
        do throws(BackendError) {
            try CompassAnswer.check(response, isWrite: true, mayBeForbidden: true, connection.account)
        } catch {
            // Compass says no: there is nothing to revert.
            guard case .refused = error else { throw error }
        }
    }

    /// Removes a record. One that is not there counts as removed.
    ///
    /// - Parameter action: The name of the record type's action.
    package func delete(
        _ id: String, action: String = "Delete", before deadline: WriteDeadline
    ) async throws(BackendError) {
        let path = try recordPath(id) + "?actionName=" + URLText.escape(action)
        let response = try await connection.write("DELETE", path, before: deadline)
        if CompassAnswer.isAbsent(response) { return }
        try CompassAnswer.check(response, isWrite: true, mayBeForbidden: true, connection.account)
    }

    private func recordPath(_ id: String) throws(BackendError) -> String {
        try connection.recordsPath + "/" + CompassConnection.segment(id)
    }

    /// - Parameter values: None send `{}`, as the vendor's app does.
    private func change(
        _ method: String, _ path: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> RecordBody {
        var json = Data("{}".utf8)
        if !values.isEmpty {
            guard let body = try? JSONEncoder().encode(["fields": values]) else {
                throw .refused(["The fields cannot be written as JSON"])
            }
            json = body
        }
        let response = try await connection.write(method, path, Array(json), before: deadline)
        try CompassAnswer.check(response, isWrite: true, mayBeForbidden: true, connection.account)
        guard let body = HTTPAnswer.decoded(RecordBody.self, from: response.body) else {
            throw .outcomeUnknown(reason: "HTTP \(response.status) without a record")
        }
        return body
    }
}
