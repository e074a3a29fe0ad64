/// Fields of a `WriteCheckpoint` object: the last number that a client of the PowerSync protocol got for its uploads.
///
/// It has the client's id and is in a services' realm, ``RealmPath/sent(_:)``. A checkpoint of the client's stream
/// that has the number contains everything that the client uploaded before it got the number.
public struct WriteCheckpoint: Codable, Equatable, Sendable {
    /// The number; it grows.
    public var number: Int64
    /// Whether the client chose the number; `nil`: the server did.
    public var isChosen: Bool?

    /// Creates the fields.
    public init(number: Int64, isChosen: Bool? = nil) {
        self.number = number
        self.isChosen = isChosen
    }
}

extension WriteCheckpoint: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case number, isChosen
    }

    /// The row of ``Kind/writeCheckpoint``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [], ids: .natural)

    /// Rejects a number that clients cannot count from.
    package var objection: String? { number >= 1 ? nil : "number must be at least 1" }
}
