import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres

/// Removes rows that ended long ago, records the age of the oldest due row, and requests the removal of devices whose
/// credential was revoked.
struct DeliverySweep: ~Copyable {
    /// Limit on the rows removed by one statement.
    private static let countMax: Int64 = 5_000
    /// Limit on the registered devices that one sweep checks. With more, a revoked device is removed after several
    /// sweeps; nothing is sent to it meanwhile.
    private static let deviceCountMax: Int64 = 2_000

    private var connection: Connection
    private let retention: Duration
    private let metrics: DeliveryMetrics
    private var lastDevice = DeliveryStore.DevicePosition()

    init(conninfo: String, retention: Duration, metrics: DeliveryMetrics) throws {
        var connection = try Connection(conninfo, check: Lineage.check)
        try Schema.check(on: &connection, oldest: DeliveryHandler.schemaOldest)
        self.connection = connection
        self.retention = retention
        self.metrics = metrics
    }

    /// Runs one sweep. Several processes may do so concurrently.
    ///
    /// - Returns: The delay until the next sweep.
    mutating func step() throws -> Duration {
        for (channel, seconds) in try connection.run(DeliveryStore.oldest).decode(String.self, Double.self) {
            if let channel = Channel(rawValue: channel) { metrics.oldest(channel, seconds: seconds) }
        }
        try removeDevices()
        let count = try connection.run(DeliveryStore.removeOld(retention, countMax: Self.countMax)).affectedCount
        return count < Self.countMax ? .seconds(15) : .milliseconds(100)
    }

    /// Checks the next page of devices. The worker removes the revoked ones from the choices.
    private mutating func removeDevices() throws {
        let page = try connection.run(DeliveryStore.devices(after: lastDevice, countMax: Self.deviceCountMax))
            .decode(Int32.self, Int32.self, Bytea.self, String?.self, UUID?.self)
        var revoked: [Int32: [(subject: EventSubject, decision: Int)]] = [:]
        for (environment, _, _, path, choice) in page {
            guard let path = path.flatMap({ RealmPath($0) }), let choice else { continue }
            let subject = EventSubject(realm: path, kind: .deliveryChoice, id: choice)
            revoked[environment, default: []].append((subject, -1))
        }
        for (environment, choices) in revoked {
            try connection.run(
                DeliveryStore.cascade(
                    to: choices, reason: "the credential of a device was revoked",
                    in: EnvironmentID(rawValue: environment)))
        }
        lastDevice = DeliveryStore.DevicePosition()
        if page.count == Int(Self.deviceCountMax), let (environment, realm, token, _, _) = page.last {
            lastDevice = DeliveryStore.DevicePosition(environment: environment, realm: realm, token: token)
        }
    }
}
