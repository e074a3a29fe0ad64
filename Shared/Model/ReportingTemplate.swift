import Essentials
public import FoundationEssentials

/// Fields of a `ReportingTemplate` object: the choices that an entry of one type needs, such as "Project" or "Leave".
public struct ReportingTemplate: Codable, Hashable, Sendable {
    /// The display name.
    public var name: String
    /// The type of time, such as `project` or `absence`, which the back end's adapter interprets.
    public var type: String
    /// The ids of the contexts, in the order of the choices; none if absent.
    public var reportingContexts: [UUID]

    /// Creates the fields of a template.
    public init(name: String, type: String, reportingContexts: [UUID]) {
        self.name = name
        self.type = type
        self.reportingContexts = reportingContexts
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
