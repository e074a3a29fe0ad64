import BackendConnections
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A person with whose own login the tracker is read, for them alone.
struct OwnReader: Sendable {
    let person: KnownPeople.Person
    let login: OwnDefectLogin
    /// Their `DefectAccount`. Another login is another position.
    let account: RealmObject
}

/// The people of a batch of polls who are told by their own logins.
struct OwnReaders {
    private var people: [String: KnownPeople.Person] = [:]
    private var readers: [Int32: OwnReader] = [:]
    private var runs: [Int32: [DefectPoll.Scope: Int64]] = [:]
    private var watermarks: [Int32: (tracker: UUID, time: String)] = [:]
    /// Whether the environment's account has read a short while ago: what it has seen counts as seen by all.
    private(set) var comeAfterAccount = false

    /// - Parameter emails: Whose polls they are.
    init(
        _ emails: Set<String>, at tracker: DefectTracker, _ directory: inout RealmDirectory,
        _ decoder: JSONDecoder, _ connection: inout Connection
    ) throws {
        if emails.isEmpty { return }
        let environment = tracker.environment
        let paths = emails.compactMap { email in (try? RealmPath.user(email)).map { (email: email, path: $0) } }
        let numbers = try directory.ids(of: paths.map(\.path), in: environment, create: false, on: &connection)
        for (email, path) in paths {
            if let realm = numbers[path] { people[email] = KnownPeople.Person(email: email, realm: realm) }
        }
        let realms = people.values.map(\.realm)
        let answers = try connection.run([
            OwnDefectLogin.load(realms, in: environment),
            RealmObject.load(.defectAccount, realms: realms, in: environment),
            OwnStore.finished(realms, in: environment), OwnStore.watermarks(realms, in: environment),
            OwnStore.hasAccountReadLately(
                within: WatermarkRule.accountSeconds(interval: tracker.pollSeconds), in: environment),
        ])
        let logins = try OwnDefectLogin.byRealm(answers[0])
        let accounts = Dictionary(try RealmObject.byKey(answers[1]).map { ($0.key.realm, $0.value) }) { first, _ in
            first
        }
        for person in people.values {
            guard let login = logins[person.realm], let account = accounts[person.realm],
                // One that cannot be read is not known to be good.
                (try? account.decoded(as: DefectAccount.self, by: decoder))?.status == .good
            else { continue }
            readers[person.realm] = OwnReader(person: person, login: login, account: account)
        }
        for (realm, scope, run) in try answers[2].decode(Int32.self, String.self, Int64.self) {
            if let scope = DefectPoll.Scope(rawValue: scope) { runs[realm, default: [:]][scope] = run }
        }
        for (realm, tracker, time) in try answers[3].decode(Int32.self, UUID.self, String.self) {
            watermarks[realm] = (tracker, time)
        }
        comeAfterAccount = try answers[4][0].decode(Bool.self)
    }

    /// The number of a person's realm; `nil`: they have none.
    func realm(of email: String) -> Int32? { people[email]?.realm }

    /// - Returns: `nil` when they have no login, or the tracker does not let it in.
    func reader(_ email: String) -> OwnReader? { realm(of: email).flatMap { readers[$0] } }

    func finishedRun(of scope: DefectPoll.Scope, _ realm: Int32) -> Int64 { runs[realm]?[scope] ?? 0 }

    /// Up to where a person's own login has read a tracker.
    func watermark(of realm: Int32, _ tracker: UUID) -> String? {
        watermarks[realm].flatMap { $0.tracker == tracker ? $0.time : nil }
    }
}
