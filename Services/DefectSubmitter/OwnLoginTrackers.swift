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
    init(secrets: SecretBox, connect: @escaping @Sendable (CompassSettings, CompassAccount) -> any RecordEditing) {
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
            settings.pageRowsMax = QueryPage.rowsMax
            return connect(settings, try login.account(of: realm, in: tracker.environment, secrets))
        }
    }
}

/// A page of the rows of a query, from row `(number - 1) * rowsMax` on.
struct QueryPage: Sendable {
    /// Rows of a page. `CompassSettings.pagesMax` such pages end at `DefectCommand.fromRowMax`.
    static let rowsMax = 50

    let columns: [String]
    let page: ResultPage
}

/// The tracker operations of people's commands. Errors are those of `CompassClient`.
protocol RecordEditing: Sendable {
    /// Checks whether the tracker accepts the login.
    func logIn() async throws(BackendError)
    /// Returns a record as last committed, or as it is in the person's edit session; `nil`: it does not exist.
    func record(_ id: String) async throws(BackendError) -> Record?
    func recordType() async throws(BackendError) -> RecordType
    /// Returns the roots of the person's workspace, or one of its folders; `nil`: it does not exist.
    func folders(in id: String?) async throws(BackendError) -> [Folder]?
    /// Runs a query and returns a page of its rows; `nil`: the query does not exist.
    func page(_ number: Int, ofQuery id: String) async throws(BackendError) -> QueryPage?
    /// Opens a new record.
    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record
    /// Opens an edit session, and writes the values that mandatory fields and lists depend on.
    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// Returns a field as it is in the edit session.
    func field(_ name: String, of id: String) async throws(BackendError) -> Field?
    func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// Ends the person's edit session of a record, if one is open.
    func revert(_ id: String) async throws(BackendError)
    func delete(_ id: String, action: String, before deadline: WriteDeadline) async throws(BackendError)
}

extension CompassClient: RecordEditing {
    func folders(in id: String?) async throws(BackendError) -> [Folder]? {
        guard let id else { return try await folders() }
        return try await folder(id).map { [$0] }
    }

    func page(_ number: Int, ofQuery id: String) async throws(BackendError) -> QueryPage? {
        guard let query = try await queryToRun(id) else { return nil }
        let set = try await run(query, mayBeForbidden: true)
        return QueryPage(columns: set.columns, page: try await page(number, of: set))
    }

    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await create(before: deadline).record
    }

    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await edit(id, action: action, values, before: deadline).record
    }
}
