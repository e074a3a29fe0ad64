import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The state that a batch of commands and logins is processed from.
struct CommandSnapshot {
    let environment: EnvironmentID
    let objects: [ObjectKey: RealmObject]
    /// The accounts by the realms of their people.
    let accounts: [Int32: RealmObject]
    /// The environment's tracker; `nil`: it has none.
    let stored: DefectTracker?
    private let logins: [Int32: OwnDefectLogin]
    /// Attempts by command, and by record.
    private var attempts: [ObjectKey: AttemptStore.Row] = [:]
    private var targets: [UUID: AttemptStore.Row] = [:]
    private var commands: [ObjectKey: Result<DefectCommand, StoredJSONError>] = [:]
    /// The submit position of a person's first waiting command for a record.
    private var first: [CommandOrderStore.RecordKey: Int64] = [:]
    /// Ended commands above the limit of a person.
    private(set) var surplus: [Int32: [UUID]] = [:]

    /// Loads the state in two round trips, and one more for the tracker.
    init(
        _ keys: [ObjectKey], in environment: EnvironmentID, _ decoder: JSONDecoder, on connection: inout Connection
    ) throws {
        self.environment = environment
        let realms = Array(Set(keys.map(\.realm)))
        stored = try DefectTracker.load(environment, on: &connection)
        let results = try connection.run([
            RealmObject.load(keys, in: environment), RealmObject.load(.defectAccount, realms: realms, in: environment),
            OwnDefectLogin.load(realms, in: environment), CommandOrderStore.surplus(in: realms, of: environment),
        ])
        objects = try RealmObject.byKey(results[0])
        accounts = Dictionary(try RealmObject.byKey(results[1]).map { ($0.key.realm, $0.value) }) { first, _ in first }
        logins = try OwnDefectLogin.byRealm(results[2])
        for (realm, command) in try results[3].decode(Int32.self, UUID.self) {
            surplus[realm, default: []].append(command)
        }
        for (key, object) in objects where key.kind == .defectCommand {
            do throws(StoredJSONError) {
                if let command = try object.decoded(as: DefectCommand.self, by: decoder) {
                    commands[key] = .success(command)
                }
            } catch {
                commands[key] = .failure(error)
            }
        }
        try loadAttempts(keys.filter { $0.kind == .defectCommand }, on: &connection)
    }

    private mutating func loadAttempts(_ keys: [ObjectKey], on connection: inout Connection) throws {
        if keys.isEmpty { return }
        let results = try connection.run([
            AttemptStore.load(
                commands: keys.map { ($0.realm, $0.id) },
                targets: Array(Set(keys.compactMap(ownTarget) + keys.compactMap(recordTarget))), in: environment),
            CommandOrderStore.first(at: Array(Set(keys.compactMap(recordKey))), in: environment),
        ])
        for (realm, record, position) in try results[1].decode(Int32.self, String.self, Int64.self) {
            first[CommandOrderStore.RecordKey(realm, record)] = position
        }
        for attempt in try AttemptStore.read(results[0]) {
            attempts[ObjectKey(realm: attempt.realm, kind: .defectCommand, id: attempt.command)] = attempt
            targets[attempt.target] = attempt
        }
    }

    // MARK: Commands

    /// - Throws: `StoredJSONError`.
    func state(of key: ObjectKey, _ decoder: JSONDecoder) throws -> CommandState {
        let attempt = attempts[key]
        guard let object = objects[key] else { return CommandState(command: .missing, attempt: attempt?.attempt) }
        guard let command = try commands[key]?.get() else {
            var state = CommandState(command: .tombstone, attempt: attempt?.attempt)
            state.rejectionReason = try commandRejection(of: key.realm, decoder)
            state.hasTrackerChanged = attempt.map { !isOfTracker($0, key) } ?? false
            return state
        }
        var state = CommandState(command: .live(command), attempt: attempt?.attempt)
        guard command.status == .waiting, command.submitRequested else { return state }
        state.rejectionReason = try commandRejection(of: key.realm, decoder)
        guard let target = ownTarget(key) else { return state }
        state.hasTrackerChanged = attempt.map { !isOfTracker($0, key) } ?? false
        if let other = targets[target], other.command != key.id || other.realm != key.realm {
            state.isNextForRecord = false
        }
        // A read would return the values of the person's own edit session.
        if command.operation == .read, let edited = recordTarget(key), targets[edited]?.realm == key.realm {
            state.isNextForRecord = false
        }
        if let recordKey = recordKey(key), let position = first[recordKey], position < object.editPosition {
            state.isNextForRecord = false
        }
        return state
    }

    /// Returns the id of a command's row in the ledger, stored or to be stored.
    func target(of key: ObjectKey, _ state: CommandState) -> UUID? {
        attempts[key]?.target ?? ownTarget(key)
    }

    /// Returns the existing record of a command; `nil` without one.
    func recordKey(_ key: ObjectKey) -> CommandOrderStore.RecordKey? {
        guard case .success(let command) = commands[key] else { return nil }
        return command.orderedRecord.map { CommandOrderStore.RecordKey(key.realm, $0) }
    }

    /// Returns the id of the ledger's row of the existing record that a command edits or reads; `nil` without such a
    /// record.
    func recordTarget(_ key: ObjectKey) -> UUID? {
        guard let stored, case .success(let command) = commands[key] else { return nil }
        return command.orderedRecord.map { stored.ids.defect($0) }
    }

    /// - Returns: `nil` if the command no longer exists, or if there is no tracker.
    private func ownTarget(_ key: ObjectKey) -> UUID? {
        guard let stored, case .success(let command) = commands[key] else { return nil }
        if let record = command.existingRecord { return stored.ids.defect(record) }
        return Self.target(ofNew: key, at: stored)
    }

    private static func target(ofNew key: ObjectKey, at tracker: DefectTracker) -> UUID {
        tracker.ids.id("command", "\(key.realm)", key.id.text)
    }

    /// Whether a row belongs to the environment's current tracker.
    private func isOfTracker(_ attempt: AttemptStore.Row, _ key: ObjectKey) -> Bool {
        guard let stored else { return false }
        return attempt.target == Self.target(ofNew: key, at: stored)
            || attempt.attempt.record.map { stored.ids.defect($0) } == attempt.target
    }

    // MARK: Logins

    /// Returns the reason why no command of a person can be performed; `nil`: it can be tried.
    ///
    /// - Throws: `StoredJSONError`.
    private func commandRejection(of realm: Int32, _ decoder: JSONDecoder) throws -> String? {
        if let reason = loginRejection(of: realm) { return reason }
        guard let account = try accounts[realm]?.decoded(as: DefectAccount.self, by: decoder),
            account.status == .refused
        else { return nil }
        return "HCL Compass rejects your login: \(account.reason ?? "no reason given")"
    }

    /// Returns the reason why a person's login cannot be tried; `nil`: it can.
    func loginRejection(of realm: Int32) -> String? {
        if stored == nil { return "Your organisation has no HCL Compass configured" }
        return logins[realm] == nil ? "You have no stored login for HCL Compass" : nil
    }

    /// - Throws: `MissingBackend`.
    func tracker(of realm: Int32, _ trackers: OwnLoginTrackers) throws(MissingBackend) -> any RecordEditing {
        guard let stored, let login = logins[realm] else { throw MissingBackend("the person has no stored login") }
        return try trackers.client(of: realm, login, at: stored)
    }

    /// Returns the id of a record's mirrors.
    func mirror(of record: String) -> UUID? { stored?.ids.defect(record) }
}
