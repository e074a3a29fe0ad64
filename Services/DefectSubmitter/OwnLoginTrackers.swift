import BackendConnections
import BackendProtocol
import Compass
import Essentials
import HTTPClient
import Model
import Secrets

/// The tracker clients of people: one for each person, whose login serves all their commands of this process as long as
/// the login and the tracker's settings stay the same. A rejected login is tried once: waiting commands get the same
/// result without another request, before the account has the status.
final class OwnLoginTrackers: Sendable {
    private let secrets: SecretBox
    private let connect: @Sendable (CompassSettings, CompassAccount) -> any RecordEditing
    private let clients = PersonalLoginCache<any RecordEditing>()

    /// - Parameters:
    ///   - secrets: Decrypts people's logins.
    ///   - connect: Makes a client.
    init(
        secrets: SecretBox, connect: @escaping @Sendable (CompassSettings, CompassAccount) -> any RecordEditing
    ) {
        self.secrets = secrets
        self.connect = connect
    }

    /// - Parameter callMax: Timeout of a single HTTP call.
    convenience init(_ client: Client, secrets: SecretBox, callMax: Duration) {
        self.init(secrets: secrets) { settings, account in
            var settings = settings
            settings.callMax = callMax
            return CompassClient(settings, as: account, client: client)
        }
    }

    /// - Throws: `MissingBackend` if the login's secret cannot be decrypted.
    func client(
        of realm: Int32, _ login: OwnDefectLogin, at tracker: DefectTracker
    ) throws(MissingBackend) -> any RecordEditing {
        try clients.value(of: realm, login, at: tracker) { () throws(MissingBackend) in
            var settings = tracker.settings
            settings.isRefusalFinal = true
            return connect(settings, try login.account(of: realm, in: tracker.environment, secrets))
        }
    }
}
