internal import BackendProtocol
internal import Model
internal import Synchronization

/// What is made of an environment's stored settings, and serves this process until they change.
final class KeptByEnvironment<Stored: Equatable & Sendable, Made: Sendable>: Sendable {
    private let known = Mutex<[EnvironmentID: (stored: Stored, made: Made)]>([:])

    /// - Parameter make: Only called when the settings are others than those of the last call.
    func value(
        of environment: EnvironmentID, from stored: Stored, make: (Stored) throws(MissingBackend) -> Made
    ) throws(MissingBackend) -> Made {
        if let entry = known.withLock({ $0[environment] }), entry.stored == stored { return entry.made }
        let made = try make(stored)
        known.withLock { $0[environment] = (stored, made) }
        return made
    }
}
