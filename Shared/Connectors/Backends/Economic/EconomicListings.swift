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
struct EconomicListings: Sendable {
    private let shared: SharedFetch<EconomicChoices>

    init(_ connection: EconomicConnection, as templates: TemplateDeclarations) {
        shared = SharedFetch(ageMax: connection.settings.listingAgeMax) { await Self.fetch(connection, templates) }
    }

    func choices() async throws(BackendError) -> EconomicChoices { try await shared.current().value }

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
