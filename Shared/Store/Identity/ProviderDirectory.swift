/// Providers' configurations, kept for a while, and longer when a provider is away.
package actor ProviderDirectory {
    private struct Place: Hashable {
        let issuer: String
        let url: String?
    }

    private typealias Reading = Result<ProviderMetadata, ProviderFailure>

    private struct Entry {
        var metadata: ProviderMetadata?
        var readAt: ContinuousClock.Instant?
        var failure: (error: ProviderFailure, at: ContinuousClock.Instant)?
    }

    private let provider: OpenIDProvider
    private var entries: [Place: Entry] = [:]
    private var running: [Place: Task<Reading, Never>] = [:]

    private static let ageMax = Duration.seconds(600)
    private static let refetchMin = Duration.seconds(1)

    package init(_ provider: OpenIDProvider) { self.provider = provider }

    /// The provider's configuration. One reading at a time, and none within a second of a failed one.
    ///
    /// - Parameter url: Where it is, when it is not below the issuer.
    package func metadata(of issuer: String, at url: String?) async throws(ProviderFailure) -> ProviderMetadata {
        let (place, now) = (Place(issuer: issuer, url: url), ContinuousClock.now)
        let entry = entries[place] ?? Entry()
        let isResting = entry.failure.map { now - $0.at < Self.refetchMin } ?? false
        if let metadata = entry.metadata {
            // Nobody waits for a refresh: what is at hand stays good while the provider is away.
            let isFresh = entry.readAt.map { now - $0 < Self.ageMax } ?? false
            if !isFresh, !isResting { _ = read(place) }
            return metadata
        }
        if isResting, let failure = entry.failure { throw failure.error }
        return try await read(place).value.get()
    }

    private func read(_ place: Place) -> Task<Reading, Never> {
        if let task = running[place] { return task }
        let task = Task { await load(place) }
        running[place] = task
        return task
    }

    private func load(_ place: Place) async -> Reading {
        let reading: Reading
        do throws(ProviderFailure) {
            reading = .success(try await provider.discover(place.issuer, at: place.url))
        } catch {
            reading = .failure(error)
        }
        running[place] = nil
        switch reading {
        case .success(let metadata): entries[place] = Entry(metadata: metadata, readAt: .now)
        case .failure(let error): entries[place, default: Entry()].failure = (error, .now)
        }
        return reading
    }
}
