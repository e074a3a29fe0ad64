/// A cache of providers' configurations, which retains an expired entry while its provider is unavailable.
package actor ProviderDirectory {
    private struct Location: Hashable {
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
    private var entries: [Location: Entry] = [:]
    private var running: [Location: Task<Reading, Never>] = [:]

    private static let ageMax = Duration.seconds(600)
    private static let refetchMin = Duration.seconds(1)

    package init(_ provider: OpenIDProvider) { self.provider = provider }

    /// Returns a provider's configuration. Runs one read at a time, and none within 1 s of a failure.
    ///
    /// - Parameter url: The location, if it is not below the issuer.
    package func metadata(of issuer: String, at url: String?) async throws(ProviderFailure) -> ProviderMetadata {
        let (location, now) = (Location(issuer: issuer, url: url), ContinuousClock.now)
        let entry = entries[location] ?? Entry()
        let isBackingOff = entry.failure.map { now - $0.at < Self.refetchMin } ?? false
        if let metadata = entry.metadata {
            // No caller waits for a refresh: the cached entry stays valid while the provider is unavailable.
            let isFresh = entry.readAt.map { now - $0 < Self.ageMax } ?? false
            if !isFresh, !isBackingOff { _ = read(location) }
            return metadata
        }
        if isBackingOff, let failure = entry.failure { throw failure.error }
        return try await read(location).value.get()
    }

    private func read(_ location: Location) -> Task<Reading, Never> {
        if let task = running[location] { return task }
        let task = Task { await load(location) }
        running[location] = task
        return task
    }

    private func load(_ location: Location) async -> Reading {
        let reading: Reading
        do throws(ProviderFailure) {
            reading = .success(try await provider.discover(location.issuer, at: location.url))
        } catch {
            reading = .failure(error)
        }
        running[location] = nil
        switch reading {
        case .success(let metadata): entries[location] = Entry(metadata: metadata, readAt: .now)
        case .failure(let error): entries[location, default: Entry()].failure = (error, .now)
        }
        return reading
    }
}
