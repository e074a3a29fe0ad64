import Access
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The realm of a person's write checkpoints, `/sent/{e-mail}`: one object for each client of the PowerSync
/// protocol. No device opens it.
struct SentRealm: Sendable {
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
