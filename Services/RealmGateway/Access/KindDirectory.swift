import Model
import ObjectStore
import Postgres
import Synchronization

/// The kinds of the environments, loaded when they are first needed.
///
/// There is no notification of a new version: a commit detects decisions by an earlier one
/// (``MutationBatch/Outcome/kindsChanged``).
final class KindDirectory: Sendable {
    private struct Entry {
        var catalogue: KindCatalogue
        /// When the version was last compared with the database.
        var checkedAt: ContinuousClock.Instant
    }

    /// Maximum age of what ``current(in:)`` returns.
    private static let ageMax = Duration.seconds(1)

    /// The names of the kinds by their numbers.
    let names = KindNames()
    private let pool: Pool
    private let entries = Mutex<[EnvironmentID: Entry]>([:])

    init(pool: Pool) { self.pool = pool }

    /// Returns the version that was last loaded.
    func loaded(in environment: EnvironmentID) -> KindCatalogue {
        entries.withLock { $0[environment]?.catalogue } ?? .unloaded
    }

    /// Returns a version that was the newest at most a second ago.
    func current(in environment: EnvironmentID) async throws -> KindCatalogue {
        let entry = entries.withLock { $0[environment] }
        if let entry, entry.checkedAt.duration(to: .now) < Self.ageMax { return entry.catalogue }
        return try await load(environment)
    }

    /// Returns the newest version.
    func load(_ environment: EnvironmentID) async throws -> KindCatalogue {
        let (now, loaded) = (ContinuousClock.now, loaded(in: environment))
        let catalogue = try await mappingDatabaseErrors {
            try await pool.run { connection in
                let version = try connection.run(KindCatalogue.version(in: environment))[0].decode(Int32.self)
                return version == loaded.version ? loaded : try KindCatalogue.load(environment, on: &connection)
            }
        }
        entries.withLock { entries in
            // A call that began later may have loaded a newer version.
            guard entries[environment].map({ $0.checkedAt <= now }) ?? true else { return }
            entries[environment] = Entry(catalogue: catalogue, checkedAt: now)
        }
        return catalogue
    }
}
