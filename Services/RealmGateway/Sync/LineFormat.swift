/// The protocol in which a session writes its lines.
enum LineFormat: Sendable, Equatable {
    /// The device API: `/v1/sync`.
    case device
    /// The PowerSync protocol: `/sync/stream`. Realms are buckets, whose names have the generation.
    case bucket(generation: Int64)
}
