import Essentials
public import FoundationEssentials

/// Fields of a `ReportingTemplate` object: which choices an entry of one sort needs, such as "Project" or "Leave".
public struct ReportingTemplate: Codable, Hashable, Sendable {
    /// What a person sees.
    public var name: String
    /// The sort of time, such as `project` or `absence`; the back end's adapter gives it a meaning.
    public var type: String
    /// The ids of the contexts, in the order in which they are chosen.
    public var reportingContexts: [UUID]

    /// A template.
    public init(name: String, type: String, reportingContexts: [UUID]) {
        self.name = name
        self.type = type
        self.reportingContexts = reportingContexts
    }

    /// Reads the fields; without contexts there are none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        type = try container.decode(String.self, forKey: .type)
        reportingContexts = try container.decodeIfPresent([UUID].self, forKey: .reportingContexts) ?? []
    }
}

extension ReportingTemplate: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case name, type, reportingContexts
    }

    package var objection: String? { DisplayName.objection(to: name, of: "name") }

    /// The row of ``Kind/reportingTemplate``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user])
}
