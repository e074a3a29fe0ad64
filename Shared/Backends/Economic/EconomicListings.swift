internal import Model

/// What everybody may report on, read once for all calls of a short while: e-conomic lists it without regard to the
/// person, so a poll of thousands of people reads it a few times and not thousands of times.
actor EconomicListings {
    private typealias Fetch = Task<Result<ReportingData, BackendError>, Never>

    private let connection: EconomicConnection
    private var known: (data: ReportingData, readAt: ContinuousClock.Instant)?
    private var fetching: Fetch?

    init(_ connection: EconomicConnection) { self.connection = connection }

    /// Without anybody's suggestions.
    func reportingData() async throws(BackendError) -> ReportingData {
        while true {
            if let known, .now - known.readAt < connection.settings.listingAgeMax { return known.data }
            let fetch = fetching ?? begin()
            let result = await withTaskCancellationHandler {
                await fetch.value
            } onCancel: {
                fetch.cancel()
            }
            // It ended because another call was cancelled that had asked for it: this one asks again.
            if case .failure = result, fetch.isCancelled, !Task.isCancelled { continue }
            return try result.get()
        }
    }

    private func begin() -> Fetch {
        let readAt = ContinuousClock.now
        let fetch = Task { [connection] in
            let result = await EconomicListings.fetch(connection)
            finish(result, readAt)
            return result
        }
        fetching = fetch
        return fetch
    }

    private func finish(_ result: Result<ReportingData, BackendError>, _ readAt: ContinuousClock.Instant) {
        fetching = nil
        if case .success(let data) = result { known = (data, readAt) }
    }

    private static func fetch(_ connection: EconomicConnection) async -> Result<ReportingData, BackendError> {
        do throws(BackendError) {
            var found = EconomicProjects()
            found.projects = try await connection.rows("/projects", as: EconomicProject.self)
            found.activities = try await connection.rows("/activities", as: EconomicActivity.self)
            found.links = try await connection.rows("/project-activities", as: EconomicProjectActivity.self)
            return .success(EconomicReporting.data(found))
        } catch {
            return .failure(error)
        }
    }
}
