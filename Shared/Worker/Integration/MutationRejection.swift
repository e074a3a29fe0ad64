/// The reason why the gateway rejected a mutation.
public struct MutationRejection: Error, Equatable, Sendable {
    /// The rejection's code, such as `version-conflict`. `deploy/openapi.yaml` lists them (schema `Rejection`).
    public let code: String
    /// The reason, for people.
    public let detail: String

    /// Whether the object was changed or deleted after its position was read. The later state has a message of its own,
    /// so a worker has nothing to do. Any other rejection is an error.
    public var isSuperseded: Bool { ["version-conflict", "deleted", "unknown-object"].contains(code) }
}

/// A problem of RFC 9457, whose type is `urn:fieldpost:problem:` and the code.
extension MutationRejection: Decodable {
    private enum CodingKeys: CodingKey {
        case type, detail
    }

    /// Decodes a problem.
    public init(from decoder: any Decoder) throws {
        let problem = try decoder.container(keyedBy: CodingKeys.self)
        let type = try problem.decode(String.self, forKey: .type)
        code = type.split(separator: ":").last.map(String.init) ?? type
        detail = try problem.decodeIfPresent(String.self, forKey: .detail) ?? ""
    }
}
