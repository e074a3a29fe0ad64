import BackendConnections
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The state that a batch of polls is processed from.
struct PollSnapshot {
    let objects: [ObjectKey: RealmObject]
    private let tracker: DefectTracker
    private let finishedRuns: [DefectPoll.Scope: Int64]
    /// The environment's position and the newest watermark of all logins.
    private let position: Int64
    private let watermark: String?
    /// The watermark of the environment's account.
    private let accountWatermark: String?
    /// The oldest watermark of people's own logins, if the environment has an account.
    private let oldestOwnWatermark: String?
    private let own: OwnLoginReaders

    /// Loads the state in one round trip, and two more if people's own logins are used.
    init(
        _ keys: [ObjectKey], at tracker: DefectTracker, _ directory: inout RealmDirectory, _ decoder: JSONDecoder,
        _ connection: inout Connection
    ) throws {
        let environment = tracker.environment
        self.tracker = tracker
        var statements = [
            RealmObject.load(keys, in: environment), DefectStore.finished(in: environment),
            DefectStore.progress(of: environment),
        ]
        if tracker.account != nil {
            statements.append(OwnLoginStore.oldestWatermark(of: tracker.ids.namespace, in: environment))
        }
        let results = try connection.run(statements)
        objects = try RealmObject.byKey(results[0])
        finishedRuns = try DefectStore.finishedRuns(results[1])
        let (position, reader, time, accountTime) = try results[2][0].decode(
            Int64.self, UUID?.self, String?.self, String?.self)
        self.position = position
        watermark = reader == tracker.ids.namespace ? time : nil
        accountWatermark = reader == tracker.ids.namespace ? accountTime : nil
        oldestOwnWatermark = tracker.account == nil ? nil : try results[3][0].decode(String?.self)
        let emails = objects.values.compactMap { (try? $0.decoded(as: DefectPoll.self, by: decoder))?.person }
        own = try OwnLoginReaders(Set(emails), at: tracker, &directory, decoder, &connection)
    }

    /// - Returns: `nil` if the poll needs no processing.
    /// - Throws: `StoredJSONError`.
    func context(of key: ObjectKey, _ decision: Int, _ decoder: JSONDecoder) throws -> DefectHandler.PollContext? {
        guard let object = objects[key], let poll = try object.decoded(as: DefectPoll.self, by: decoder) else {
            return nil
        }
        let realm = poll.person.flatMap { own.realm(of: $0) }
        if poll.person != nil, realm == nil { return nil }
        let finishedRun = realm.map { own.finishedRun(of: poll.scope, $0) } ?? finishedRuns[poll.scope] ?? 0
        guard poll.run > finishedRun else { return nil }
        let ids = tracker.ids
        let ownWatermark = realm.flatMap { own.watermark(of: $0, ids.namespace) }
        return DefectHandler.PollContext(
            environment: tracker.environment, decision: decision, object: object, poll: poll, tracker: ids,
            position: position, watermark: realm == nil ? watermark : ownWatermark, environmentWatermark: watermark,
            own: tracker.account == nil ? poll.person.flatMap { own.reader($0) } : nil, realm: realm,
            accountWatermark: realm == nil || own.hasRecentAccountPoll ? accountWatermark : nil,
            oldestOwnWatermark: oldestOwnWatermark)
    }
}
