import DeviceClient
import LocalCluster
import Model

extension BenchInstallation {
    /// Opens a person's live stream, and waits for its first checkpoint.
    ///
    /// - Parameter received: Called with the changes of a realm, and the time of their arrival.
    /// - Returns: The task that reads the stream until it is cancelled.
    func receive(
        token: String,
        _ received: @escaping @Sendable (RealmPath, [SyncLine.Change], ContinuousClock.Instant) -> Void
    ) async throws -> Task<Void, any Error> {
        let (opened, open) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let receiver = Task {
            defer { open.finish() }
            for try await line in try await gateway.sync(
                token: token, body: GatewayClient.firstSyncBody(isLive: true))
            {
                let now = ContinuousClock.now
                switch try SyncLine.read(line) {
                case .checkpoint: open.yield()
                case .objects(let realm, _, let changes): received(realm, changes, now)
                case .open, .closed, .keepalive, nil: break
                }
            }
        }
        for await _ in opened { return receiver }
        // The stream has ended, or this task is cancelled.
        receiver.cancel()
        try await receiver.value
        throw ClusterFailure("the stream ended before its first checkpoint")
    }
}
