import Algorithms
import Deliveries
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// The emulators of APNs and FCM of `deploy/receivers.py`. They end with this value.
final class BenchPushServices: Sendable {
    private struct Ports: Decodable {
        let apns, fcm: Int
    }

    /// The sender that the emulators accept.
    static let (keyID, team, topic) = ("ABC123DEFG", "DEF123GHIJ", "com.example.app")

    private let folder: URL
    private let process: ClusterProcess
    private let ports: Ports

    private static let startMax = Duration.seconds(60)

    init() async throws {
        let deploy = URL(filePath: LocalCluster.schemaFolder).deletingLastPathComponent()
        let python = deploy.deletingLastPathComponent().appending(path: ".build/receivers/bin/python").path
        guard FileManager.default.isExecutableFile(atPath: python) else {
            throw ClusterFailure("there is no \(python); deploy/test installs it")
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-bench-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: python, arguments: [deploy.appending(path: "receivers.py").path, folder.path],
                environment: ["PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"],
                logPath: folder.appending(path: "log").path))
        let file = folder.appending(path: "ports")
        try await waitUntil("push services listen", within: Self.startMax, interval: .milliseconds(20)) {
            guard process.isRunning else { throw ClusterFailure(process.logTail()) }
            return FileManager.default.fileExists(atPath: file.path)
        }
        ports = try JSONDecoder().decode(Ports.self, from: Data(contentsOf: file))
        (self.folder, self.process) = (folder, process)
    }

    deinit {
        process.kill9()
        try? FileManager.default.removeItem(at: folder)
    }

    var certificateFile: String { folder.appending(path: "certificate.pem").path }
    var appleURL: String { "https://127.0.0.1:\(ports.apns)" }
    var firebaseURL: String { "https://127.0.0.1:\(ports.fcm)" }

    func text(of file: String) throws -> String {
        try String(contentsOf: folder.appending(path: file), encoding: .utf8)
    }
}

/// People with one device each, half of them at APNs and half at FCM, and their notices.
final class BenchDevices {
    let services: BenchPushServices
    private var connection: Connection
    private let environment: EnvironmentID
    private let realms: [Int32]
    /// Number of notices so far.
    private var count = 0

    private static let pageCount = 5_000

    init(_ installation: BenchInstallation, people: Int) async throws {
        services = try await BenchPushServices()
        environment = installation.environment
        try await installation.cluster.runCommand(
            [
                "environment", "deliveries", "set", BenchInstallation.environmentName, "--private-addresses",
                "--apns-key-from", "APNS_KEY", "--apns-key-id", BenchPushServices.keyID, "--apns-team",
                BenchPushServices.team, "--apns-topic", BenchPushServices.topic, "--apns-server", services.appleURL,
                "--fcm-account-from", "FCM_ACCOUNT", "--fcm-server", services.firebaseURL,
            ],
            variables: [
                "APNS_KEY": try services.text(of: "apns.p8"), "FCM_ACCOUNT": try services.text(of: "account.json"),
            ])
        var connection = try Connection(installation.cluster.conninfo)
        var directory = RealmDirectory()
        let emails = (0..<people).map { "device\($0)@bench.example" }
        let paths = try emails.map { try RealmPath.user($0) }
        let numbers = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        realms = paths.compactMap { numbers[$0] }
        self.connection = connection
        try register(emails)
    }

    /// Logs in the devices, and registers them in their people's choices.
    private func register(_ emails: [String]) throws {
        let names = emails.map { email in Array(UUID(name: email, in: Self.namespace).text.utf8.prefix(32)) }
        try connection.run([
            """
            INSERT INTO access.person (environment_id, email, issuer, subject)
            SELECT \(environment.rawValue), e, p.issuer, e FROM unnest(\(emails)) AS u(e), access.provider p
            WHERE p.environment_id = \(environment.rawValue)
            """,
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, device, newest, issuer, subject)
            SELECT a.environment_id, a.id, 'sealed', u.name, u.name, a.issuer, a.subject
            FROM unnest(\(emails), \(names.map { Bytea($0) })) AS u(email, name)
            JOIN access.person a ON a.environment_id = \(environment.rawValue) AND a.email = u.email
            """,
        ])
        var choices: [(key: ObjectKey, fields: CanonicalJSON)] = []
        for (index, realm) in realms.enumerated() {
            let device = names[index].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            let target = DeviceTarget(
                service: index.isMultiple(of: 2) ? .apns : .fcm, token: Self.token(index), device: device)
            choices.append(
                (
                    ObjectKey(realm: realm, kind: .deliveryChoice, id: UUID()),
                    try CanonicalJSON(encoding: DeliveryChoice(devices: [target]))
                ))
        }
        try write(choices)
        // Autovacuum does it within a minute. Without statistics, each device is searched among all logins.
        try connection.runScript("ANALYZE access.person, onboarding.refresh_token, delivery.device, realm.realm")
    }

    private static let namespace = UUID(
        uuid: (0x2C, 0x91, 0x5E, 0x07, 0xB3, 0x4A, 0x48, 0xD6, 0x91, 0x7F, 0x60, 0x1B, 0xE2, 0x8C, 0x35, 0xDA))

    /// 64 hexadecimal digits, which are a token of both services.
    private static func token(_ index: Int) -> String {
        let digits = String(index, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    private func write(_ objects: [(key: ObjectKey, fields: CanonicalJSON)]) throws {
        for page in objects.chunks(ofCount: Self.pageCount) {
            var batch = WriteBatch(environment: environment)
            for (key, fields) in page { batch.put(key, fields, decision: 0, isEdit: true) }
            _ = try batch.commit(on: &connection)
        }
    }

    /// Writes notices, the same number for each person.
    func notify(_ total: Int) throws {
        var notices: [(key: ObjectKey, fields: CanonicalJSON)] = []
        for _ in 0..<total {
            let notice = Notice(
                about: nil, code: .defectModified, text: "SAMPL\(count) (cannot save) has been modified by lead",
                timestamp: .now())
            let key = ObjectKey(realm: realms[count % realms.count], kind: .notice, id: UUID())
            notices.append((key, try CanonicalJSON(encoding: notice)))
            count += 1
        }
        try write(notices)
    }

    func sentCount() throws -> Int {
        let rows = try connection.run("SELECT count(*) FROM delivery.shipment WHERE state = 'sent'")
        return Int(try rows[0].decode(Int64.self))
    }

    /// A message for APNs as `notice-deliverer` sends it.
    func appleRequest() throws -> Request {
        let key = try services.text(of: "apns.p8")
        guard let sender = APNsSender(key: key, keyID: BenchPushServices.keyID, team: BenchPushServices.team) else {
            throw ClusterFailure("the emulator's key is not readable")
        }
        return Request(
            "POST", services.appleURL + "/3/device/" + Self.token(0),
            headers: [
                ("authorization", "bearer " + (try sender.token(at: .now()))),
                ("apns-topic", BenchPushServices.topic), ("apns-push-type", "alert"), ("apns-id", UUID().text),
                ("apns-collapse-id", "bench"), ("apns-expiration", "0"), ("apns-priority", "10"),
            ], body: Array(#"{"aps":{"alert":{"body":"SAMPL1 (cannot save) has been modified by lead"}}}"#.utf8))
    }
}
