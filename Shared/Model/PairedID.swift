import FoundationEssentials

// Ids of what there is once per pair of objects: made of both, so that nobody makes it twice, and all of the first one
// are neighbours in the order of ids.
extension UUID {
    /// The first eight bytes of this id, then the last eight of the other.
    func paired(with other: UUID) -> UUID {
        let (a, b) = (uuid, other.uuid)
        return UUID(uuid: (a.0, a.1, a.2, a.3, a.4, a.5, a.6, a.7, b.8, b.9, b.10, b.11, b.12, b.13, b.14, b.15))
    }

    /// The ids among which all pairs are that begin with this id.
    var pairs: ClosedRange<UUID> {
        let zero = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        let last = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
        return paired(with: zero)...paired(with: last)
    }
}
