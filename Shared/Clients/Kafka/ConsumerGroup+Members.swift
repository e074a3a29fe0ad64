extension ConsumerGroup {
    /// Whether `members` is reliable: a coordinator may fail to list them, and describes a group of the new consumer
    /// protocol (KIP-848) as `Dead`, without members, to a client of the classic protocol.
    package var hasReliableMembers: Bool { failure == nil && state != "Dead" }
}
