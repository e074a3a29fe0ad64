public import FoundationEssentials

/// Fields of a `PrivateProfile` object: a person's data that no other person reads. In the person's own realm, under
/// the id of their own `Person`; at most one per person.
///
/// ``Person`` and ``PersonLookup`` have the data that all people of the environment read.
public struct PrivateProfile: Codable, Equatable, Sendable {
    /// The telephone number, as the person writes it.
    public var phone: String?
    /// The postal address.
    public var address: String?
    /// Other remarks of the person about themselves.
    public var remarks: String?
    /// The id of the `Team` that the person's devices display first. It may have been deleted, or the person may have
    /// left it.
    public var defaultTeam: UUID?

    /// Creates the fields of a profile.
    public init(phone: String? = nil, address: String? = nil, remarks: String? = nil, defaultTeam: UUID? = nil) {
        self.phone = phone
        self.address = address
        self.remarks = remarks
        self.defaultTeam = defaultTeam
    }
}

extension PrivateProfile: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case phone, address, remarks, defaultTeam
    }

    /// The row of ``Kind/privateProfile``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], ids: .natural, bytesMax: Kind.commonBytesMax)
}
