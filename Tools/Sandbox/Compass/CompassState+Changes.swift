import Essentials

/// A user's change in Compass itself, without any rule: for tests, and for trackers that are loaded.
struct CompassChange: Codable, Equatable, Sendable {
    /// An id; without one a record is made.
    var record: String?
    var user: String
    /// The action in the history; by default `Submit` for a new record, otherwise `Modify`.
    var action: String?
    /// The state it leads to; `nil`: that of the action, where it has one.
    var state: String?
    var fields: [String: String]
    /// When it truly was; `nil`: now.
    var at: Timestamp?
    /// The users who may read it and change it; by default unchanged, and all users for a new record.
    var readers: [String]?
    var editors: [String]?
}

extension CompassState {
    /// - Returns: The record's number.
    mutating func perform(_ change: CompassChange) throws(CompassRules.Refusal) -> Int {
        let atMs = change.at?.millisecondsSinceEpoch ?? nowMs
        var old: CompassRecord
        if let id = change.record {
            guard let number = CompassRecord.number(ofID: id), let known = record(number) else {
                throw CompassRules.Refusal("The record \(id) was not found.", .notFound)
            }
            old = known
        } else {
            old = CompassRecord(
                number: reserveNumber(), fields: ["Submitter": change.user],
                submittedAtMs: serverMs(at: atMs), version: 0)
        }
        if let readers = change.readers { old.readers = readers }
        if let editors = change.editors { old.editors = editors }
        let action = change.action ?? (old.version == 0 ? "Submit" : "Modify")
        let state = change.state ?? CompassSchema.action(action)?.destination
        write(saved(old, change.fields, state), over: old, action, by: change.user, atMs: atMs)
        return old.number
    }

    /// The history as it truly is: each change with the record as it is now, from change `number` on.
    func changes(after number: Int) -> [(record: CompassRecord, entry: CompassHistory)] {
        var found: [(record: CompassRecord, entry: CompassHistory)] = []
        for (record, entries) in zip(records, history) {
            guard let record else { continue }
            for entry in entries where entry.number > number { found.append((record, entry)) }
        }
        return found.sorted { $0.entry.number < $1.entry.number }
    }
}

extension CompassSystem {
    /// Does one change after the other; the first that cannot be done ends it.
    ///
    /// - Returns: The ids of their records.
    @discardableResult
    func perform(_ changes: [CompassChange]) throws(CompassRules.Refusal) -> [String] {
        try withState { state throws(CompassRules.Refusal) in
            var ids: [String] = []
            for change in changes { ids.append(CompassRecord.id(ofNumber: try state.perform(change))) }
            return ids
        }
    }
}
