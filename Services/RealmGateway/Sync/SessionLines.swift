import Model
import NIOCore
import ObjectStore

/// The lines for a session's next write, in the protocol of its device: a short response is one packet.
struct SessionLines {
    let format: LineFormat
    private var pending: [ByteBuffer] = []
    /// The state of a device of the PowerSync protocol; `nil` in the device API.
    private let buckets: BucketLines?

    /// The time of the last line with the token's remaining time.
    private var expiryAnnouncedAt = ContinuousClock.now
    private let expiryInterval: Duration

    /// - Parameter expiryInterval: The time after which a busy stream has another line with the token's remaining time.
    init(_ request: SyncRequest, generation: Int64, expiryInterval: Duration = BucketLines.keepaliveMax) {
        self.expiryInterval = expiryInterval
        buckets = request.buckets.map { BucketLines($0, generation: generation) }
        format = buckets == nil ? .device : .bucket(generation: generation)
    }

    /// Removes and returns the pending lines.
    mutating func take() -> [ByteBuffer] {
        defer { pending = [] }
        return pending
    }

    /// Appends lines of data.
    mutating func append(_ lines: [ByteBuffer]) {
        pending += lines
        if !lines.isEmpty { buckets?.addedData() }
    }

    mutating func open(_ realm: RealmPath, isReset: Bool) {
        if let buckets { return buckets.opened(realm) }
        pending.append(SyncLines.open(realm, isReset: isReset))
    }

    mutating func close(_ realm: RealmPath) {
        if let buckets { return buckets.closed(realm) }
        pending.append(SyncLines.closed(realm.description))
    }

    /// - Parameter path: A path of the request, which may be no realm's.
    mutating func close(_ path: String) {
        guard buckets != nil else { return pending.append(SyncLines.closed(path)) }
        if let realm = RealmPath(path) { close(realm) }
    }

    /// Announces the opened realms before their data; only in the PowerSync protocol.
    mutating func announce(at position: Int64, defaults: @autoclosure () -> [RealmPath]) {
        if let line = buckets?.announcement(at: position, defaults: Set(defaults())) { pending.append(line) }
    }

    /// Records the client's write checkpoint for the next lines.
    func setWriteCheckpoint(_ number: Int64?) { buckets?.setWriteCheckpoint(number) }

    mutating func checkpoint(_ cursor: Cursor, realms: [RealmPath]?) {
        pending += buckets?.checkpoint(at: cursor.position) ?? [SyncLines.checkpoint(cursor, realms: realms)]
    }

    mutating func keepalive(expiresIn seconds: Int64, _ cursor: Cursor, realms: [RealmPath]?) {
        expiryAnnouncedAt = .now
        pending +=
            buckets?.keepalive(expiresIn: seconds, at: cursor.position)
            ?? [SyncLines.keepalive(expiresIn: seconds, cursor, realms: realms)]
    }

    /// Appends the token's remaining time to a busy stream, at intervals; only in the PowerSync protocol, whose clients
    /// renew their token by it.
    mutating func announceExpiry(in seconds: Int64) {
        guard buckets != nil, .now - expiryAnnouncedAt >= expiryInterval else { return }
        expiryAnnouncedAt = .now
        pending.append(BucketLines.expiry(in: seconds))
    }
}
