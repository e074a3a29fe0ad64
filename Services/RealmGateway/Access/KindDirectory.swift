import Model
import ObjectStore
import Postgres
import Synchronization

/// The kinds of the environments, loaded when they are first needed.
///
/// There is no notification of a new version: a commit detects decisions by an earlier one
/// (``MutationBatch/Outcome/kindsChanged``). A file that several environments have is stored once.
final class KindDirectory: Sendable {
    private struct Entry {
        let version: Int32
        let digest: Bytea
        /// When the version was last compared with the database.
        let checkedAt: ContinuousClock.Instant
    }

    private struct File {
        let catalogue: KindCatalogue
        var usedAt: ContinuousClock.Instant
    }

    private struct State {
        var entries: [EnvironmentID: Entry] = [:]
        /// The files by their digests.
        var files: [Bytea: File] = [:]

        /// Returns the catalogue of an entry; `nil` if its file was evicted.
        mutating func catalogue(of entry: Entry) -> KindCatalogue? {
            files[entry.digest]?.usedAt = .now
            return files[entry.digest]?.catalogue.asVersion(entry.version)
        }

        /// Stores a file, and evicts those that were not used for the longest time.
        mutating func store(_ catalogue: KindCatalogue, fileBytesMax: Int) {
            files[catalogue.digest] = File(catalogue: catalogue, usedAt: .now)
            var byteCount = files.values.reduce(0) { $0 + $1.catalogue.fileByteCount }
            while byteCount > fileBytesMax, files.count > 1,
                let oldest = files.min(by: { $0.value.usedAt < $1.value.usedAt })
            {
                files[oldest.key] = nil
                byteCount -= oldest.value.catalogue.fileByteCount
            }
        }
    }

    /// Maximum age of what ``current(in:)`` returns.
    private static let ageMax = Duration.seconds(1)
    /// Maximum size of the stored files as JSON, in bytes. A file needs about eight times its size in memory.
    static let fileBytesMaxDefault = 6 << 20

    /// The names of the kinds by their numbers.
    let names = KindNames()
    private let pool: Pool
    private let fileBytesMax: Int
    private let state = Mutex(State())

    init(pool: Pool, fileBytesMax: Int = fileBytesMaxDefault) { (self.pool, self.fileBytesMax) = (pool, fileBytesMax) }

    /// Returns the version that was last loaded; a catalogue without a version if there is none, or it was evicted.
    func loaded(in environment: EnvironmentID) -> KindCatalogue {
        state.withLock { state in state.entries[environment].flatMap { state.catalogue(of: $0) } } ?? .unloaded
    }

    /// Returns a version that was the newest at most a second ago.
    func current(in environment: EnvironmentID) async throws -> KindCatalogue {
        let catalogue = state.withLock { state -> KindCatalogue? in
            guard let entry = state.entries[environment], entry.checkedAt.duration(to: .now) < Self.ageMax else {
                return nil
            }
            return state.catalogue(of: entry)
        }
        if let catalogue { return catalogue }
        return try await load(environment)
    }

    /// Returns the newest version.
    func load(_ environment: EnvironmentID) async throws -> KindCatalogue {
        let now = ContinuousClock.now
        let catalogue = try await mappingDatabaseErrors {
            try await pool.run { [self] connection in
                let head = try KindVersion.head(in: environment, on: &connection)
                let stored = state.withLock { $0.files[head.digest]?.catalogue }
                return try stored?.asVersion(head.version) ?? KindCatalogue.load(environment, on: &connection)
            }
        }
        state.withLock { state in
            state.store(catalogue, fileBytesMax: fileBytesMax)
            // A call that began later may have loaded a newer version.
            guard state.entries[environment].map({ $0.checkedAt <= now }) ?? true else { return }
            state.entries[environment] = Entry(version: catalogue.version, digest: catalogue.digest, checkedAt: now)
        }
        return catalogue
    }
}
