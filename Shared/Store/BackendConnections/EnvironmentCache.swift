internal import BackendProtocol
internal import Model
internal import Synchronization

/// A cache of objects that are created from an environment's stored settings, valid while the settings are unchanged.
final class EnvironmentCache<Stored: Equatable & Sendable, Value: Sendable>: Sendable {
    private let entries = Mutex<[EnvironmentID: (stored: Stored, value: Value)]>([:])

    /// Returns the cached value, or creates it.
    ///
    /// - Parameter make: Creates a value; called only if the settings differ from those of the last call.
    func value(
        of environment: EnvironmentID, from stored: Stored, make: (Stored) throws(MissingBackend) -> Value
    ) throws(MissingBackend) -> Value {
        if let entry = entries.withLock({ $0[environment] }), entry.stored == stored { return entry.value }
        let value = try make(stored)
        entries.withLock { $0[environment] = (stored, value) }
        return value
    }
}
