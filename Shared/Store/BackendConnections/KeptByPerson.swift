package import BackendProtocol
internal import Model
internal import Synchronization

/// What is made of a person's own login of their environment's tracker, and serves this process until the login or the
/// tracker's settings change.
package final class KeptByPerson<Made: Sendable>: Sendable {
    /// Whose login it is.
    private struct Person: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private let countMax: Int
    private let known = Mutex<[Person: (tracker: DefectTracker, login: OwnDefectLogin, made: Made)]>([:])

    /// - Parameter countMax: People of whom something is kept: more, and it begins anew.
    package init(countMax: Int = 10_000) { self.countMax = countMax }

    /// - Parameters:
    ///   - realm: The number of the person's realm.
    ///   - make: Only called when the login, or the tracker, is another one than at the last call.
    package func value(
        of realm: Int32, _ login: OwnDefectLogin, at tracker: DefectTracker,
        make: () throws(MissingBackend) -> Made
    ) throws(MissingBackend) -> Made {
        let person = Person(environment: tracker.environment, realm: realm)
        if let entry = known.withLock({ $0[person] }), entry.tracker == tracker, entry.login == login {
            return entry.made
        }
        let made = try make()
        known.withLock { known in
            if known.count >= countMax { known.removeAll() }
            known[person] = (tracker, login, made)
        }
        return made
    }
}
