import BackendConnections
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What a batch of polls is decided from.
struct LoadedPolls {
    let objects: [ObjectKey: RealmObject]
    private let tracker: DefectTracker
    private let finishedRuns: [DefectPoll.Scope: Int64]
    /// The environment's position, and up to where the history of this tracker was read.
    private let position: Int64
    private let watermark: String?
    /// Of those, what its account has read.
    private let accountWatermark: String?
    /// Where there is an account: the oldest of those whose own logins have read until it came.
    private let ownOldest: String?
    private let own: OwnReaders

    /// One round trip, and two more where people's own logins are used.
    init(
        _ keys: [ObjectKey], at tracker: DefectTracker, _ directory: inout RealmDirectory, _ decoder: JSONDecoder,
        _ connection: inout Connection
    ) throws {
        let environment = tracker.environment
        self.tracker = tracker
        var statements = [
            RealmObject.load(keys, in: environment), DefectStore.finished(in: environment),
            DefectStore.place(of: environment),
        ]
        if tracker.account != nil {
            statements.append(OwnStore.oldestWatermark(of: tracker.ids.namespace, in: environment))
        }
        let answers = try connection.run(statements)
        objects = try RealmObject.byKey(answers[0])
        finishedRuns = try DefectStore.finishedRuns(answers[1])
        let (position, reader, time, accountTime) = try answers[2][0].decode(
            Int64.self, UUID?.self, String?.self, String?.self)
        self.position = position
        watermark = reader == tracker.ids.namespace ? time : nil
        accountWatermark = reader == tracker.ids.namespace ? accountTime : nil
        ownOldest = tracker.account == nil ? nil : try answers[3][0].decode(String?.self)
        let emails = objects.values.compactMap { (try? $0.decoded(as: DefectPoll.self, by: decoder))?.person }
        own = try OwnReaders(Set(emails), at: tracker, &directory, decoder, &connection)
    }

    /// - Returns: `nil` when there is nothing to be done for a poll.
    /// - Throws: `Undecodable`.
    func turn(of key: ObjectKey, _ decision: Int, _ decoder: JSONDecoder) throws -> DefectHandler.Turn? {
        guard let object = objects[key], let poll = try object.decoded(as: DefectPoll.self, by: decoder) else {
            return nil
        }
        let realm = poll.person.flatMap { own.realm(of: $0) }
        if poll.person != nil, realm == nil { return nil }
        let finishedRun = realm.map { own.finishedRun(of: poll.scope, $0) } ?? finishedRuns[poll.scope] ?? 0
        guard poll.run > finishedRun else { return nil }
        let ids = tracker.ids
        let ownWatermark = realm.flatMap { own.watermark(of: $0, ids.namespace) }
        return DefectHandler.Turn(
            environment: tracker.environment, decision: decision, object: object, poll: poll, tracker: ids,
            position: position, watermark: realm == nil ? watermark : ownWatermark, everybodys: watermark,
            own: tracker.account == nil ? poll.person.flatMap { own.reader($0) } : nil, realm: realm,
            accountWatermark: realm == nil || own.comeAfterAccount ? accountWatermark : nil,
            ownOldest: ownOldest)
    }
}
