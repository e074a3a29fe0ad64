import Access
import Model
import Postgres

/// Loads the permissions of a caller, from the realms that define them.
struct AccessReader: Sendable {
    let caller: Caller
    /// The number of a person's own realm; 0 for an integration.
    let own: Int32
    let common: Int32
    private let named: [RealmPath]

    /// - Parameter named: Realms that the request names.
    init(_ caller: Caller, named: [RealmPath] = [], _ numbers: RealmNumbers, on connection: inout Connection) throws {
        self.caller = caller
        let ids = try numbers.numbers(
            of: [.common] + (caller.own.map { [$0] } ?? []), in: caller.environment, create: true, on: &connection)
        own = caller.own.flatMap { ids[$0] } ?? 0
        common = ids[.common] ?? 0
        self.named = named
    }

    var statements: [Statement] { AccessState.load(caller, own: own, common: common, named: named) }

    /// Decodes the results of ``statements``.
    func state(_ results: some Sequence<Rows>) throws -> AccessState {
        try AccessState(caller, named: named, Array(results))
    }

    func read(on connection: inout Connection) throws -> AccessState {
        try state(try connection.run(statements))
    }
}

extension AccessState {
    /// Returns whether a change of this object may affect the caller's permissions.
    func isAffected(by change: LiveChunk.PermissionChange, in realm: Int32, own: Int32) -> Bool {
        guard let object = caller.object else { return false }
        switch change.source {
        case .user: return realm == own
        case .person: return change.id == object
        case .membership: return Membership.ids(of: object).contains(change.id)
        // Only a team's existence counts, not its name.
        case .team:
            let hadTeam = teams[change.id] != nil || namedTeams[change.id] != nil
            return hadTeam ? !change.exists : missingTeams.contains(change.id)
        case .share: return true
        }
    }
}
