import BackendConnections
import BackendProtocol
import Compass
import Essentials
import HTTPClient
import Model
import Secrets

/// How trackers are called as people: one client each, whose login serves all their commands of this process as long
/// as their login and the tracker's settings stay the same. A login that is refused is tried once: the commands that
/// wait hear of it without another try, before the account says so.
final class OwnTrackers: Sendable {
    private let secrets: SecretBox
    private let connect: @Sendable (CompassSettings, CompassAccount) -> any RecordEditing
    private let kept = KeptByPerson<any RecordEditing>()

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
        try kept.value(of: realm, login, at: tracker) { () throws(MissingBackend) in
            var settings = tracker.settings
            settings.isRefusalFinal = true
            return connect(settings, try login.account(of: realm, in: tracker.environment, secrets))
        }
    }
}
