public import FoundationEssentials

/// An object's fields with its id, which is not one of the fields.
public struct Identified<Fields> {
    /// The object's id.
    public var id: UUID
    /// The object's fields.
    public var fields: Fields

    /// Pairs an id with fields.
    public init(id: UUID, fields: Fields) {
        self.id = id
        self.fields = fields
    }
}

extension Identified: Equatable where Fields: Equatable {}
extension Identified: Hashable where Fields: Hashable {}
extension Identified: Sendable where Fields: Sendable {}
