import Essentials

/// A record as a response shows it.
struct CompassView: Sendable {
    let record: CompassRecord
    /// The user's action; `nil`: the record is not being edited.
    let action: CompassSchema.Action?
    /// The record's values, with those of the edit session.
    let values: [String: String]
    let zone: CompassZone
    let choices: CompassRules.Choices
    let isShuffled: Bool
    /// The field whose value is not a text; empty: none.
    let unreadableField: String

    func value(_ field: String) -> String {
        CompassSchema.readOnly.contains(field) ? record.value(field, zone) : values[field] ?? ""
    }
}

/// Reading and editing records.
extension CompassState {
    /// - Throws: ``CompassRules/Refusal`` where there is none, or not for this user.
    func view(_ id: String, _ user: CompassUser) throws(CompassRules.Refusal) -> CompassView {
        guard let number = CompassRecord.number(ofID: id) else { throw Self.absent(id) }
        if let session = sessions[user.name, number] {
            return view(record(number) ?? Self.new(number, user, 0), session)
        }
        return view(try readable(id, user), nil)
    }

    private func view(_ record: CompassRecord, _ session: CompassSession?) -> CompassView {
        CompassView(
            record: record, action: session?.action,
            values: record.fields.merging(session?.values ?? [:]) { $1 }, zone: switches.zone,
            choices: choices, isShuffled: switches.shufflesFields, unreadableField: switches.unreadableField)
    }

    private static func new(_ number: Int, _ user: CompassUser, _ ms: Int64) -> CompassRecord {
        CompassRecord(number: number, fields: ["Submitter": user.name], submittedAtMs: ms, version: 0)
    }

    private static func absent(_ id: String) -> CompassRules.Refusal {
        CompassRules.Refusal("The record \(id) was not found.", .notFound)
    }

    private func readable(_ id: String, _ user: CompassUser) throws(CompassRules.Refusal) -> CompassRecord {
        guard let number = CompassRecord.number(ofID: id), let record = record(number) else { throw Self.absent(id) }
        guard record.canBeRead(by: user) else {
            throw CompassRules.Refusal("You may not see the record \(id).", .forbidden)
        }
        return record
    }

    private func changeable(_ id: String, _ user: CompassUser) throws(CompassRules.Refusal) -> CompassRecord {
        let record = try readable(id, user)
        guard record.canBeChanged(by: user) else {
            throw CompassRules.Refusal("You may not change the record \(id).", .forbidden)
        }
        return record
    }

    /// Begins to edit.
    mutating func edit(
        _ id: String, _ actionName: String?, _ values: [String: String], by user: CompassUser, isTrial: Bool
    ) throws(CompassRules.Refusal) -> CompassView {
        endOldSessions()
        let record = try changeable(id, user)
        guard sessions[user.name, record.number] == nil else {
            throw CompassRules.Refusal("You are editing the record \(id) already: commit or revert it.")
        }
        let action = try CompassRules.action(actionName, from: record.fields["State"] ?? "")
        let session = CompassSession(
            user: user.name, number: record.number, action: action, version: record.version, beganAtMs: nowMs,
            values: values)
        if !isTrial { sessions[user.name, record.number] = session }
        return view(record, session)
    }

    /// Begins a new record.
    mutating func create(by user: CompassUser, isTrial: Bool) throws(CompassRules.Refusal) -> CompassView {
        endOldSessions()
        guard let action = CompassSchema.action("Submit") else { throw CompassRules.Refusal("There is no Submit.") }
        let number = isTrial ? records.count + 1 : reserveNumber()
        let session = CompassSession(
            user: user.name, number: number, action: action, version: 0, beganAtMs: nowMs, values: [:])
        if !isTrial { sessions[user.name, number] = session }
        return view(Self.new(number, user, serverMs(at: nowMs)), session)
    }

    /// Saves, and ends the edit session. A refused one stays open.
    mutating func commit(
        _ id: String, _ values: [String: String], by user: CompassUser, isTrial: Bool
    ) throws(CompassRules.Refusal) -> CompassView {
        endOldSessions()
        guard let number = CompassRecord.number(ofID: id) else { throw Self.absent(id) }
        guard let session = sessions[user.name, number] else {
            _ = try readable(id, user)
            throw CompassRules.Refusal("The record \(id) is not being edited.")
        }
        // Read once, since the clock advances: the record's time is that of its first row of history.
        let atMs = nowMs
        let old = session.isNew ? Self.new(number, user, serverMs(at: atMs)) : try changeable(id, user)
        guard old.version == session.version else {
            throw CompassRules.Refusal(
                "The record \(id) has been updated by another user while you were editing it.")
        }
        let written = session.values.merging(values) { $1 }
        let problems = CompassRules.problems(writing: written, over: old.fields, session.action, choices)
        guard problems.isEmpty else { throw CompassRules.Refusal(problems.joined(separator: "\n")) }
        let record = saved(old, written, session.action.destination)
        if !isTrial {
            sessions[user.name, number] = nil
            write(record, over: old, session.action.name, by: user.name, atMs: atMs)
        }
        return view(record, nil)
    }

    /// Ends an edit session without saving.
    mutating func revert(_ id: String, by user: CompassUser, isTrial: Bool) throws(CompassRules.Refusal) {
        endOldSessions()
        guard let number = CompassRecord.number(ofID: id) else { throw Self.absent(id) }
        guard sessions[user.name, number] != nil else {
            _ = try readable(id, user)
            throw CompassRules.Refusal("The record \(id) is not being edited.")
        }
        if !isTrial { sessions[user.name, number] = nil }
    }

    mutating func delete(
        _ id: String, _ actionName: String?, by user: CompassUser, isTrial: Bool
    ) throws(CompassRules.Refusal) {
        var record = try changeable(id, user)
        guard let action = CompassSchema.action(actionName ?? ""), action.type == "_DELETE" else {
            throw CompassRules.Refusal("The action \"\(actionName ?? "")\" does not delete.")
        }
        record.isDeleted = true
        record.version += 1
        if !isTrial { write(.record(record, nil)) }
    }

    /// Lifetime of an edit session that is not ended.
    private static let sessionMsMax: Int64 = 1_800_000

    private mutating func endOldSessions() {
        sessions.endThose(begunBefore: nowMs - Self.sessionMsMax)
    }

    // MARK: Saving

    /// A record with new values; empty ones are left out.
    func saved(_ old: CompassRecord, _ values: [String: String], _ state: String?) -> CompassRecord {
        var record = old
        record.fields.merge(values) { $1 }
        if let state { record.fields["State"] = state }
        record.fields = record.fields.filter { !$0.value.isEmpty }
        record.version += 1
        return record
    }

    /// Keeps a record's new state, and what was done.
    mutating func write(
        _ record: CompassRecord, over old: CompassRecord, _ action: String, by user: String, atMs: Int64
    ) {
        var changes: [String: String] = [:]
        for field in Set(record.fields.keys).union(old.fields.keys) where record.fields[field] != old.fields[field] {
            changes[field] = record.fields[field] ?? ""
        }
        write(
            .record(
                record,
                CompassHistory(
                    number: nextHistoryNumber, action: action, user: user, atMs: atMs,
                    clockMs: serverMs(at: atMs),
                    visibleAtMs: atMs + Int64(switches.visibleAfterMs), oldState: old.fields["State"] ?? "",
                    newState: record.fields["State"] ?? "", owner: record.fields["Owner"] ?? "", changes: changes)))
    }
}
