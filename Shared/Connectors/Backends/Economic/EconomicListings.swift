internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// What everybody may report on, without anybody's suggestions.
struct EconomicChoices: Sendable {
    let data: ReportingData
    /// Names what is in it: the same nodes have the same one, in every process.
    let digest: UUID

    init(_ data: ReportingData) {
        self.data = data
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let nodes = data.nodes.map { node in
            node.id.text + ((try? encoder.encode(node.fields)).map { String(decoding: $0, as: UTF8.self) } ?? "")
        }
        digest = UUID(name: nodes.joined(separator: "\n"), in: EconomicReporting.trees.id("choices", ""))
    }
}

/// What everybody may report on, read once for all calls of a short while: e-conomic lists it without regard to the
/// person, so a poll of thousands of people reads it a few times and not thousands of times.
actor EconomicListings {
    private typealias Fetch = Task<Result<EconomicChoices, BackendError>, Never>

    private let connection: EconomicConnection
    private let templates: TemplateDeclarations
    private var known: (choices: EconomicChoices, readAt: ContinuousClock.Instant)?
    private var fetching: Fetch?

    init(_ connection: EconomicConnection, as templates: TemplateDeclarations) {
        self.connection = connection
        self.templates = templates
    }

    func choices() async throws(BackendError) -> EconomicChoices {
        while true {
            if let known, .now - known.readAt < connection.settings.listingAgeMax { return known.choices }
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
            let result = await EconomicListings.fetch(connection, templates)
            finish(result, readAt)
            return result
        }
        fetching = fetch
        return fetch
    }

    private func finish(_ result: Result<EconomicChoices, BackendError>, _ readAt: ContinuousClock.Instant) {
        fetching = nil
        if case .success(let choices) = result { known = (choices, readAt) }
    }

    private static func fetch(
        _ connection: EconomicConnection, _ templates: TemplateDeclarations
    ) async -> Result<EconomicChoices, BackendError> {
        do throws(BackendError) {
            var found = EconomicProjects()
            let projects = try await connection.rows("/projects", as: EconomicProject.self)
            let activities = try await connection.rows("/activities", as: EconomicActivity.self)
            let links = try await connection.rows("/project-activities", as: EconomicProjectActivity.self)
            (found.projects, found.activities, found.links) = (projects.rows, activities.rows, links.rows)
            found.unreadable = projects.unreadable + activities.unreadable + links.unreadable
            return .success(EconomicChoices(EconomicReporting.data(found, as: templates)))
        } catch {
            return .failure(error)
        }
    }
}
