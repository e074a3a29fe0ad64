import FoundationEssentials

// Ids of objects that exist once per pair of other objects: derived from both, so that all creators produce the same
// id, and contiguous in the order of ids for the same first object.
extension UUID {
    /// Combines the first eight bytes of this id with the last eight of the other.
    func paired(with other: UUID) -> UUID {
        let (a, b) = (uuid, other.uuid)
        return UUID(uuid: (a.0, a.1, a.2, a.3, a.4, a.5, a.6, a.7, b.8, b.9, b.10, b.11, b.12, b.13, b.14, b.15))
    }

    /// The range of all paired ids that begin with this id.
    var pairs: ClosedRange<UUID> {
        let zero = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        let last = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
        return paired(with: zero)...paired(with: last)
    }
}
