import BackendConnections
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A person whose own login reads the tracker, for that person alone.
struct OwnLoginReader: Sendable {
    let person: TrackerPerson
    let login: OwnDefectLogin
    /// Their `DefectAccount`. Its position changes with the login.
    let account: RealmObject
}

/// The people of a batch of polls who are notified with their own logins.
struct OwnLoginReaders {
    private var people: [String: TrackerPerson] = [:]
    private var readers: [Int32: OwnLoginReader] = [:]
    private var runs: [Int32: [DefectPoll.Scope: Int64]] = [:]
    private var watermarks: [Int32: (tracker: UUID, time: String)] = [:]
    /// Whether the environment's account has polled recently. Its watermark then counts for all people.
    private(set) var hasRecentAccountPoll = false

    /// - Parameter emails: The people of the polls.
    init(
        _ emails: Set<String>, at tracker: DefectTracker, _ directory: inout RealmDirectory,
        _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws {
        if emails.isEmpty { return }
        let environment = tracker.environment
        let paths = emails.compactMap { email in (try? RealmPath.user(email)).map { (email: email, path: $0) } }
        let numbers = try directory.ids(of: paths.map(\.path), in: environment, create: false, on: &connection)
        for (email, path) in paths {
            if let realm = numbers[path] { people[email] = TrackerPerson(email: email, realm: realm) }
        }
        let realms = people.values.map(\.realm)
        let results = try connection.run([
            OwnDefectLogin.load(realms, in: environment),
            RealmObject.load(.defectAccount, realms: realms, in: environment),
            OwnLoginStore.finished(realms, in: environment), OwnLoginStore.watermarks(realms, in: environment),
            OwnLoginStore.hasRecentAccountPoll(
                within: WatermarkRule.accountSeconds(interval: tracker.pollSeconds), in: environment),
        ])
        let logins = try OwnDefectLogin.byRealm(results[0])
        let accounts = Dictionary(try RealmObject.byKey(results[1]).map { ($0.key.realm, $0.value) }) { first, _ in
            first
        }
        for person in people.values {
            guard let login = logins[person.realm], let account = accounts[person.realm],
                // An account that does not decode does not count as good.
                (try? account.decoded(as: DefectAccount.self, by: decoder))?.status == .good
            else { continue }
            readers[person.realm] = OwnLoginReader(person: person, login: login, account: account)
        }
        for (realm, scope, run) in try results[2].decode(Int32.self, String.self, Int64.self) {
            if let scope = DefectPoll.Scope(rawValue: scope) { runs[realm, default: [:]][scope] = run }
        }
        for (realm, tracker, time) in try results[3].decode(Int32.self, UUID.self, String.self) {
            watermarks[realm] = (tracker, time)
        }
        hasRecentAccountPoll = try results[4][0].decode(Bool.self)
    }

    /// Returns the number of a person's realm; `nil`: they have none.
    func realm(of email: String) -> Int32? { people[email]?.realm }

    /// - Returns: `nil` if the person has no login, or if the tracker rejects it.
    func reader(_ email: String) -> OwnLoginReader? { realm(of: email).flatMap { readers[$0] } }

    func finishedRun(of scope: DefectPoll.Scope, _ realm: Int32) -> Int64 { runs[realm]?[scope] ?? 0 }

    /// Returns the watermark of a person's own login in a tracker.
    func watermark(of realm: Int32, _ tracker: UUID) -> String? {
        watermarks[realm].flatMap { $0.tracker == tracker ? $0.time : nil }
    }
}
