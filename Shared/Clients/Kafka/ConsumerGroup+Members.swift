extension ConsumerGroup {
    /// Whether its members are those in `members`: a coordinator may refuse to list them, and describes a group of the
    /// new consumer protocol (KIP-848) as `Dead`, without members, to a client of the classic protocol.
    package var hasKnownMembers: Bool { failure == nil && state != "Dead" }
}
