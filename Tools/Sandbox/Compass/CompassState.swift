import Essentials

typealias CompassSystem = EmulatedSystem<CompassState>

/// The state of the Compass emulator: users, records, workspaces, logins.
struct CompassState: EmulatorState {
    /// A line of the journal.
    enum Line: Codable {
        case organisation(CompassOrganisation)
        /// A record's new state, and what was done.
        case record(CompassRecord, CompassHistory?)
        case folder(CompassWorkspace.Folder)
        case query(CompassWorkspace.Query)
        case queryRemoved(Int)
    }

    private(set) var users: [String: CompassUser] = [:]
    private(set) var projects: [String: [String]] = [:]
    /// Number − 1 is the index; `nil` where a new record was not committed.
    private(set) var records: [CompassRecord?] = []
    private(set) var history: [[CompassHistory]] = []
    private(set) var workspace = CompassWorkspace()
    private var historyCount = 0
    var sessions = CompassSessions()
    var logins = CompassLogins()
    var resultSets = CompassResultSets()
    /// The time that the clock shows, in milliseconds since 1970; `nil`: the machine's.
    var clockMs: Int64?
    var injector = FaultInjector<CompassSwitches>()
    var journal: Journal<Line>?

    var recordCount: Int { records.count { $0 != nil } }

    mutating func apply(_ line: Line) {
        switch line {
        case .organisation(let organisation): add(organisation)
        case .record(let record, let entry):
            while records.count < record.number { _ = reserveNumber() }
            records[record.number - 1] = record
            if let entry {
                history[record.number - 1].append(entry)
                historyCount = max(historyCount, entry.number)
            }
        case .folder(let folder): workspace.put(folder)
        case .query(let query): workspace.put(query)
        case .queryRemoved(let id): workspace.removeQuery(id)
        }
    }

    private mutating func add(_ organisation: CompassOrganisation) {
        for user in organisation.users ?? [] { users[user.name] = user }
        for (project, components) in organisation.projects ?? [:] {
            let known = projects[project] ?? []
            projects[project] = known + components.filter { !known.contains($0) }
        }
    }

    /// Adds users and projects. Each new user gets a personal folder.
    mutating func load(_ organisation: CompassOrganisation) {
        let new = (organisation.users ?? []).map(\.name).filter { users[$0] == nil }
        write(.organisation(organisation))
        for name in new {
            write(.folder(.init(id: workspace.nextID, name: CompassWorkspace.personal, owner: name)))
        }
    }

    // MARK: Records

    /// The number of a record that is begun; it is not given again before a restart.
    mutating func reserveNumber() -> Int {
        records.append(nil)
        history.append([])
        return records.count
    }

    var nextHistoryNumber: Int { historyCount + 1 }

    /// A record that is there.
    func record(_ number: Int) -> CompassRecord? {
        guard records.indices.contains(number - 1), let record = records[number - 1] else { return nil }
        return record.isDeleted ? nil : record
    }

    var choices: CompassRules.Choices { (users.keys.sorted(), projects) }

    // MARK: Times

    var nowMs: Int64 { clockMs ?? Timestamp.now().millisecondsSinceEpoch }

    /// The time of the server's clock, in milliseconds since 1970.
    ///
    /// - Parameter atMs: The true time.
    func serverMs(at atMs: Int64) -> Int64 { atMs + Int64(switches.clockSkewSeconds) * 1_000 }

    // MARK: Logins

    /// - Returns: A token; `nil` when there is no such user, or the password is another.
    mutating func logIn(_ user: String, password: String, repository: String, database: String) -> String? {
        guard !switches.refusesLogins, let known = users[user], known.password == password else { return nil }
        return logins.token(
            of: user, repository: repository, database: database, nowMs: nowMs, seconds: switches.tokenSecondsMax)
    }

    /// The user of an `Authorization`; `nil` if it is not valid.
    mutating func user(_ authorization: String) -> CompassUser? {
        if switches.refusesLogins { return nil }
        if let token = authorization.dropping("Basic ") {
            return users.values.first { $0.tokens?.contains(token) ?? false }
        }
        guard let token = authorization.dropping("Bearer ") else { return nil }
        return logins.user(of: token, nowMs: nowMs).flatMap { users[$0] }
    }

    mutating func logOff(_ authorization: String) {
        if let token = authorization.dropping("Bearer ") { logins.end(token) }
    }
}

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

extension String {
    /// The rest after a prefix; `nil` without the prefix.
    fileprivate func dropping(_ prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
