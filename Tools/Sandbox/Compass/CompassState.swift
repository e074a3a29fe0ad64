/// The state of the emulator, accessed under the lock of ``CompassSystem``.
struct CompassState: ~Copyable {
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
    var clock = CompassClock()
    var dials = SandboxDials<CompassSwitches>()
    private var journal: SandboxJournal<Line>?

    init(journalPath: String?) throws {
        guard let journalPath else { return }
        var lines: [Line] = []
        journal = try SandboxJournal<Line>(path: journalPath) { lines.append($0) }
        for line in lines { take(line) }
    }

    /// Applies a change, and journals it.
    mutating func write(_ line: Line) {
        journal?.append(line)
        take(line)
    }

    private mutating func take(_ line: Line) {
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

    var choices: CompassRules.Choices {
        CompassRules.Choices(users: users.keys.sorted(), projects: projects)
    }

    // MARK: Times

    /// The time of the server's clock, in milliseconds since 1970.
    ///
    /// - Parameter atMs: The true time.
    func serverMs(at atMs: Int64) -> Int64 { atMs + Int64(dials.switches.clockSkewSeconds) * 1_000 }
}
