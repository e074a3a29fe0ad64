package import BackendProtocol
internal import Model
internal import Synchronization

/// A cache of objects that are created from a person's own tracker login, valid while the login and the tracker's
/// settings are unchanged.
package final class PersonalLoginCache<Value: Sendable>: Sendable {
    private struct Owner: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private let countMax: Int
    private let entries = Mutex<[Owner: (tracker: DefectTracker, login: OwnDefectLogin, value: Value)]>([:])

    /// - Parameter countMax: Maximum number of people; beyond it, the cache is cleared.
    package init(countMax: Int = 10_000) { self.countMax = countMax }

    /// Returns the cached value, or creates it.
    ///
    /// - Parameters:
    ///   - realm: The number of the person's realm.
    ///   - make: Creates a value; called only if the login or the tracker differs from those of the last call.
    package func value(
        of realm: Int32, _ login: OwnDefectLogin, at tracker: DefectTracker,
        make: () throws(MissingBackend) -> Value
    ) throws(MissingBackend) -> Value {
        let owner = Owner(environment: tracker.environment, realm: realm)
        if let entry = entries.withLock({ $0[owner] }), entry.tracker == tracker, entry.login == login {
            return entry.value
        }
        let value = try make()
        entries.withLock { entries in
            if entries.count >= countMax { entries.removeAll() }
            entries[owner] = (tracker, login, value)
        }
        return value
    }
}
