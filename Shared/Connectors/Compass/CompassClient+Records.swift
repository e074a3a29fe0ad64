internal import BackendHTTP
package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// Records of ``CompassSettings/recordType``.
extension CompassClient {
    /// Returns the actions and fields of the record type.
    package func recordType() async throws(BackendError) -> RecordType {
        let response = try await connection.read(connection.recordsPath)
        try CompassResponse.check(response, isWrite: false, connection.account)
        return try BackendResponse.decode(RecordTypeBody.self, from: response.body).type(settings.recordType)
    }

    /// Returns the last committed version of a record; `nil` if it does not exist.
    ///
    /// - Throws: `refused` if the account may not read it.
    package func record(_ id: String) async throws(BackendError) -> Record? {
        guard let response = try await connection.readIfPresent(try recordPath(id)) else { return nil }
        return try BackendResponse.decode(RecordBody.self, from: response.body).record(id)
    }

    /// Returns a field of a record with its choices, in the state of the account's edit session if there is one; `nil`
    /// if the record or field does not exist.
    package func field(_ name: String, of id: String) async throws(BackendError) -> Field? {
        let path = try recordPath(id) + "/fields/" + CompassConnection.segment(name)
        guard let response = try await connection.readIfPresent(path) else { return nil }
        return try BackendResponse.decode(FieldBody.self, from: response.body).field
    }

    /// Begins an edit session of a record.
    ///
    /// - Parameters:
    ///   - action: The name of an action of the record type, to change the state.
    ///   - values: Values that are written into the session, so that dependent lists can be read.
    /// - Throws: `refused` if the record does not exist, or its state does not allow the action.
    package func edit(
        _ id: String, action: String? = nil, _ values: [FieldValue] = [], before deadline: WriteDeadline
    ) async throws(BackendError) -> EditSession {
        var query = "?operation=Edit"
        if let action { query += "&actionName=" + FormFields.encode(action) }
        let record = try await change("PATCH", try recordPath(id) + query, values, before: deadline)
        return EditSession(client: self, record: record.record(id), action: action)
    }

    /// Begins an edit session of a new record. The record already has an id, but is invisible until it is committed. To
    /// prevent duplicates, the caller stores the id before ``EditSession/commit(_:before:)``.
    package func create(before deadline: WriteDeadline) async throws(BackendError) -> EditSession {
        let path = connection.recordsPath + "/?operation=Edit"
        let body = try await change("POST", path, [], before: deadline)
        guard let id = body.id else { throw .outcomeUnknown(reason: "a new record without an id") }
        return EditSession(client: self, record: body.record(id), action: nil)
    }

    /// Saves values and ends the account's edit session of a record, also one of an earlier process.
    package func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await change("PATCH", try recordPath(id) + "?operation=Commit", values, before: deadline).record(id)
    }

    /// Discards the account's edit session of a record, also one of an earlier process. Succeeds if there is no such
    /// record or session.
    package func revert(_ id: String) async throws(BackendError) {
        let response = try await connection.write("PATCH", try recordPath(id) + "?operation=Revert", Array("{}".utf8))
        if CompassResponse.isAbsent(response) { return }
        do throws(BackendError) {
            try CompassResponse.check(response, isWrite: true, mayBeForbidden: true, connection.account)
        } catch {
            // A refusal means that there is nothing to revert.
            guard case .refused = error else { throw error }
        }
    }

    /// Deletes a record. Succeeds if it does not exist.
    ///
    /// - Parameter action: The name of the record type's action.
    package func delete(
        _ id: String, action: String = "Delete", before deadline: WriteDeadline
    ) async throws(BackendError) {
        let path = try recordPath(id) + "?actionName=" + FormFields.encode(action)
        let response = try await connection.write("DELETE", path, before: deadline)
        if CompassResponse.isAbsent(response) { return }
        try CompassResponse.check(response, isWrite: true, mayBeForbidden: true, connection.account)
    }

    private func recordPath(_ id: String) throws(BackendError) -> String {
        try connection.recordsPath + "/" + CompassConnection.segment(id)
    }

    /// - Parameter values: Without values `{}` is sent, as by the vendor's app.
    private func change(
        _ method: String, _ path: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> RecordBody {
        var json = Data("{}".utf8)
        if !values.isEmpty {
            guard let body = try? JSONEncoder().encode(["fields": values]) else {
                throw .refused(["The fields cannot be encoded as JSON"])
            }
            json = body
        }
        let response = try await connection.write(method, path, Array(json), before: deadline)
        try CompassResponse.check(response, isWrite: true, mayBeForbidden: true, connection.account)
        guard let body = BackendResponse.decoded(RecordBody.self, from: response.body) else {
            throw .outcomeUnknown(reason: "HTTP \(response.status) without a record")
        }
        return body
    }
}
