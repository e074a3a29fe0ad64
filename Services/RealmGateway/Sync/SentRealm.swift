import Access
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The realm of a person's write checkpoints, `/sent/{e-mail}`: one object for each client of the PowerSync
/// protocol. No device opens it.
struct SentRealm: Sendable {
    /// Maximum number of attempts, with optimistic concurrency, before 503.
    private static let attemptsMax = 8

    let path: RealmPath
    let number: Int32
    let client: UUID

    /// - Returns: `nil` without a client.
    init?(
        of caller: Caller, client: UUID?, _ numbers: RealmNumbers, on connection: inout Connection
    ) throws {
        guard let client, let path = caller.own?.email.flatMap({ try? RealmPath.sent($0) }) else { return nil }
        let ids = try numbers.numbers(of: [path], in: caller.environment, create: true, on: &connection)
        guard let number = ids[path] else { return nil }
        self.path = path
        self.number = number
        self.client = client
    }

    /// The client's object.
    var key: ObjectKey { ObjectKey(realm: number, kind: .writeCheckpoint, id: client) }

    /// Loads the client's object.
    func load(in environment: EnvironmentID) -> Statement { RealmObject.load([key], in: environment) }

    /// Decodes the rows of ``load(in:)``.
    func object(_ rows: Rows) throws(PostgresError) -> RealmObject? { try RealmObject.byKey(rows)[key] }

    /// Stores and returns the client's number: `requested`, or a new one. A stored number is never reduced.
    ///
    /// A new number is above the counter, so that it is also above the new numbers that a restored database has lost.
    func assign(
        _ requested: Int64? = nil, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> Int64 {
        for _ in 0..<Self.attemptsMax {
            let results = try connection.run([load(in: environment), EnvironmentCounter.load(environment)])
            let object = try object(results[0])
            let stored = WriteCheckpoint(object?.fields)?.number
            let position = try EnvironmentCounter(try counterRow(results[1])).position
            if let stored, let requested, stored >= requested { return stored }
            let next = requested ?? max((stored ?? 0) + 1, position + 1)
            var batch = WriteBatch(environment: environment)
            batch.expect(key, at: object?.position ?? 0, decision: 0)
            let fields = WriteCheckpoint(number: next, isChosen: requested == nil ? nil : true)
            batch.put(key, try CanonicalJSON(encoding: fields), decision: 0)
            if try batch.commit(on: &connection).conflicts.isEmpty { return next }
        }
        throw Problems.busy
    }

    /// Assigns a new number if the client's last one was assigned up to a position: a restored database may have lost
    /// the number that the device waits for, and without it the device displays nothing. A client that chooses its
    /// numbers has sent the last one before it opens the stream.
    ///
    /// - Returns: Whether a number was assigned; `false` also while the environment cannot be written, so that the
    ///   device can read.
    func assignAgain(
        after position: Int64, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> Bool {
        let stored = try object(try connection.run(load(in: environment)))
        guard stored?.position ?? 0 <= position, WriteCheckpoint(stored?.fields)?.isChosen != true else {
            return false
        }
        do {
            _ = try assign(in: environment, on: &connection)
            return true
        } catch let error as PostgresError where error.isLocked {
            return false
        }
    }
}

extension WriteCheckpoint {
    /// Decodes stored fields; `nil` if there are none, or if they were written manually.
    init?(_ stored: CanonicalJSON?) {
        guard let stored, let fields = try? JSONDecoder().decode(Self.self, from: Data(stored.bytes)) else {
            return nil
        }
        self = fields
    }
}
