import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What a batch of commands and logins is decided from.
struct Loaded {
    let environment: EnvironmentID
    let objects: [ObjectKey: RealmObject]
    /// The account of each realm's person.
    let accounts: [Int32: RealmObject]
    /// `nil`: the environment has none.
    let stored: DefectTracker?
    private let logins: [Int32: OwnDefectLogin]
    /// By command, and by record.
    private var attempts: [ObjectKey: AttemptStore.Stored] = [:]
    private var targets: [UUID: AttemptStore.Stored] = [:]
    private var commands: [ObjectKey: Result<DefectCommand, Undecodable>] = [:]
    /// Where a person's first command of a record was handed in.
    private var first: [OrderStore.Place: Int64] = [:]
    /// Commands at their end that are more than a person keeps.
    private(set) var surplus: [Int32: [UUID]] = [:]

    /// Two round trips, and one more for the tracker.
    init(
        _ keys: [ObjectKey], in environment: EnvironmentID, _ decoder: JSONDecoder, on connection: inout Connection
    ) throws {
        self.environment = environment
        let realms = Array(Set(keys.map(\.realm)))
        stored = try DefectTracker.load(environment, on: &connection)
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), RealmObject.load(.defectAccount, realms: realms, in: environment),
            OwnDefectLogin.load(realms, in: environment), OrderStore.surplus(in: realms, of: environment),
        ])
        objects = try RealmObject.byKey(answers[0])
        accounts = Dictionary(try RealmObject.byKey(answers[1]).map { ($0.key.realm, $0.value) }) { first, _ in first }
        logins = try OwnDefectLogin.byRealm(answers[2])
        for (realm, command) in try answers[3].decode(Int32.self, UUID.self) {
            surplus[realm, default: []].append(command)
        }
        for (key, object) in objects where key.kind == .defectCommand {
            do throws(Undecodable) {
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
        let answers = try connection.run([
            AttemptStore.load(
                commands: keys.map { ($0.realm, $0.id) }, targets: keys.compactMap(ownTarget), in: environment),
            OrderStore.first(at: Array(Set(keys.compactMap(place))), in: environment),
        ])
        for (realm, record, position) in try answers[1].decode(Int32.self, String.self, Int64.self) {
            first[OrderStore.Place(realm, record)] = position
        }
        for attempt in try AttemptStore.read(answers[0]) {
            attempts[ObjectKey(realm: attempt.realm, kind: .defectCommand, id: attempt.command)] = attempt
            targets[attempt.target] = attempt
        }
    }

    // MARK: Commands

    /// - Throws: `Undecodable`.
    func state(of key: ObjectKey, _ decoder: JSONDecoder) throws -> CommandState {
        let attempt = attempts[key]
        guard let object = objects[key] else { return CommandState(command: .missing, attempt: attempt?.attempt) }
        guard let command = try commands[key]?.get() else {
            var state = CommandState(command: .tombstone, attempt: attempt?.attempt)
            state.objection = try objectionToCommand(of: key.realm, decoder)
            state.isTrackerAnother = attempt.map { !isOfTracker($0, key) } ?? false
            return state
        }
        var state = CommandState(command: .live(command), attempt: attempt?.attempt)
        guard command.status == .waiting, command.submitRequested else { return state }
        state.objection = try objectionToCommand(of: key.realm, decoder)
        guard let target = ownTarget(key) else { return state }
        state.isTrackerAnother = attempt.map { !isOfTracker($0, key) } ?? false
        if let other = targets[target], other.command != key.id || other.realm != key.realm { state.hasTurn = false }
        if let place = place(key), let position = first[place], position < object.editPosition { state.hasTurn = false }
        return state
    }

    /// What the ledger's row of a command is called: as it is stored, or as it will be.
    func target(of key: ObjectKey, _ state: CommandState) -> UUID? {
        attempts[key]?.target ?? ownTarget(key)
    }

    /// The record that a command is about; `nil`: a new one, or none.
    func place(_ key: ObjectKey) -> OrderStore.Place? {
        guard case .success(let command) = commands[key] else { return nil }
        return command.existingRecord.map { OrderStore.Place(key.realm, $0) }
    }

    /// - Returns: `nil` when there is no command any more, or no tracker.
    private func ownTarget(_ key: ObjectKey) -> UUID? {
        guard let stored, case .success(let command) = commands[key] else { return nil }
        if let record = command.existingRecord { return stored.ids.defect(record) }
        return Self.target(ofNew: key, at: stored)
    }

    private static func target(ofNew key: ObjectKey, at tracker: DefectTracker) -> UUID {
        tracker.ids.id("command", "\(key.realm)", key.id.text)
    }

    /// Whether a row is of the tracker that the environment has now.
    private func isOfTracker(_ attempt: AttemptStore.Stored, _ key: ObjectKey) -> Bool {
        guard let stored else { return false }
        return attempt.target == Self.target(ofNew: key, at: stored)
            || attempt.attempt.record.map { stored.ids.defect($0) } == attempt.target
    }

    // MARK: Logins

    /// Why nothing can be done as a person; `nil`: it can be tried.
    ///
    /// - Throws: `Undecodable`.
    private func objectionToCommand(of realm: Int32, _ decoder: JSONDecoder) throws -> String? {
        if let objection = objectionToLogin(of: realm) { return objection }
        guard let account = try accounts[realm]?.decoded(as: DefectAccount.self, by: decoder),
            account.status == .refused
        else { return nil }
        return "HCL Compass does not accept your login: \(account.reason ?? "no reason is known")"
    }

    /// Why a person's login cannot even be tried.
    func objectionToLogin(of realm: Int32) -> String? {
        if stored == nil { return "Your organisation has no HCL Compass" }
        return logins[realm] == nil ? "Your own login of HCL Compass is not stored" : nil
    }

    /// - Throws: `MissingBackend`.
    func tracker(of realm: Int32, _ trackers: OwnTrackers) throws(MissingBackend) -> any RecordEditing {
        guard let stored, let login = logins[realm] else { throw MissingBackend("there is nobody to call as") }
        return try trackers.client(of: realm, login, at: stored)
    }

    /// The id of a record's mirrors.
    func mirror(of record: String) -> UUID? { stored?.ids.defect(record) }
}
