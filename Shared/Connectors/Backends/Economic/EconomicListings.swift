internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// The reporting data of all people, without suggestions.
struct EconomicChoices: Sendable {
    let data: ReportingData
    /// A digest of the nodes, equal for equal nodes in every process.
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

/// A short-lived cache of the reporting data of all people. e-conomic lists it independently of the person, so a poll
/// of thousands of people reads it a few times only.
actor EconomicListings {
    private typealias Fetch = Task<Result<EconomicChoices, BackendError>, Never>

    private let connection: EconomicConnection
    private let templates: TemplateDeclarations
    private var cached: (choices: EconomicChoices, readAt: ContinuousClock.Instant)?
    private var fetching: Fetch?

    init(_ connection: EconomicConnection, as templates: TemplateDeclarations) {
        self.connection = connection
        self.templates = templates
    }

    func choices() async throws(BackendError) -> EconomicChoices {
        while true {
            if let cached, .now - cached.readAt < connection.settings.listingAgeMax { return cached.choices }
            let fetch = fetching ?? begin()
            let result = await withTaskCancellationHandler {
                await fetch.value
            } onCancel: {
                fetch.cancel()
            }
            // The read was cancelled by another call that shared it: read again.
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
        if case .success(let choices) = result { cached = (choices, readAt) }
    }

    private static func fetch(
        _ connection: EconomicConnection, _ templates: TemplateDeclarations
    ) async -> Result<EconomicChoices, BackendError> {
        do throws(BackendError) {
            var source = EconomicProjects()
            let projects = try await connection.rows("/projects", as: EconomicProject.self)
            let activities = try await connection.rows("/activities", as: EconomicActivity.self)
            let links = try await connection.rows("/project-activities", as: EconomicProjectActivity.self)
            (source.projects, source.activities, source.links) = (projects.rows, activities.rows, links.rows)
            source.unreadable = projects.unreadable + activities.unreadable + links.unreadable
            return .success(EconomicChoices(EconomicReporting.data(source, as: templates)))
        } catch {
            return .failure(error)
        }
    }
}
