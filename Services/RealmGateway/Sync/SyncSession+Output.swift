import NIOCore

extension SyncSession {
    /// The result of one read.
    struct Step: Sendable {
        let lines: [ByteBuffer]
        /// Whether the device is up to date after these lines.
        let isDone: Bool
    }

    /// The reaction to an event of the send buffer.
    enum Output: Sendable {
        /// Lines to write; `isBehind`: the session must then catch up from the database.
        case write([ByteBuffer], isBehind: Bool)
        case end
    }

    /// The end of a stream that cannot continue. The device reconnects and resumes from its cursors.
    struct StreamEnd: Error {}
}
