import BackendProtocol
import Compass
import Environments
import Essentials
import HTTP
import Model
import Synchronization

/// How trackers are called as people: one client each, whose login serves all their commands of this process as long
/// as their login and the tracker's settings stay the same. A login that is refused is tried once: the commands that
/// wait hear of it without another try, before the account says so.
final class OwnTrackers: Sendable {
    /// Whose login it is.
    private struct Person: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    /// People whose clients are kept: more, and it begins anew.
    private static let countMax = 10_000

    private let secrets: SecretBox
    private let connect: @Sendable (CompassSettings, CompassAccount) -> any RecordEditing
    private let known = Mutex<[Person: (tracker: DefectTracker, login: OwnDefectLogin, client: any RecordEditing)]>([:])

    /// - Parameters:
    ///   - secrets: Opens people's logins.
    ///   - connect: Makes a client.
    init(
        secrets: SecretBox, connect: @escaping @Sendable (CompassSettings, CompassAccount) -> any RecordEditing
    ) {
        self.secrets = secrets
        self.connect = connect
    }

    /// - Parameter callMax: The longest a single HTTP call may take.
    convenience init(_ client: Client, secrets: SecretBox, callMax: Duration) {
        self.init(secrets: secrets) { settings, account in
            var settings = settings
            settings.callMax = callMax
            return CompassClient(settings, as: account, client: client)
        }
    }

    /// - Throws: `MissingBackend` when the login's secret does not open.
    func client(
        of realm: Int32, _ login: OwnDefectLogin, at tracker: DefectTracker
    ) throws(MissingBackend) -> any RecordEditing {
        let person = Person(environment: tracker.environment, realm: realm)
        if let entry = known.withLock({ $0[person] }), entry.tracker == tracker, entry.login == login {
            return entry.client
        }
        let account = try login.account(of: realm, in: tracker.environment, secrets)
        var settings = tracker.settings
        settings.isRefusalFinal = true
        let client = connect(settings, account)
        known.withLock { known in
            if known.count >= Self.countMax { known.removeAll() }
            known[person] = (tracker, login, client)
        }
        return client
    }
}
