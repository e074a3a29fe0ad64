import DeviceClient
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// A phone: its copy of the realms, its cursors and its queue of mutations.
///
/// Its copy deliberately duplicates that of `DeviceClient`, with another JSON parser: it checks the gateway line by
/// line (objects are applied on arrival, tombstones are stored, repeats are recorded), and at each checkpoint the
/// library is compared with it (`comparePhone`).
actor GatewayDevice {
    let fixture: GatewayFixture
    let gateway: Int
    let token: String
    let email: String
    nonisolated let clientID: UUID
    var realm: String { "/users/\(email)" }

    private(set) var copy: [String: [String: StreamedObject]] = [:]
    /// The state of an app's library after the same lines.
    private(set) var phone = DeviceState(clientID: UUID())
    private(set) var cursors: [String: String] = [:]
    private var opened: Set<String> = []
    private(set) var checkpoint = 0
    private(set) var checkpointCount = 0
    private(set) var keepaliveCount = 0
    /// Realms that were reset, except the one that every person has.
    private(set) var resets: [String] = []
    private(set) var closed: [String] = []
    /// The realms that the stream has open.
    var openRealms: Set<String> { opened }
    /// The maximum number of objects in each realm so far.
    private(set) var mostHeld: [String: Int] = [:]
    /// The highest position of any received object, by realm.
    private(set) var highest: [String: Int] = [:]
    /// Objects that arrived although the device had the same or a newer version.
    private(set) var repeats: [String] = []
    /// Lines that exceed the API's limit.
    private(set) var linesTooLong = 0
    private(set) var lineCount = 0
    private var sequence = 0

    init(
        _ fixture: GatewayFixture, _ email: String, gateway: Int = 0, expiresIn: Int = 600, clientID: UUID = UUID(),
        token: String? = nil
    ) async throws {
        self.fixture = fixture
        self.clientID = clientID
        self.gateway = gateway
        self.email = email
        if let token {
            self.token = token
        } else {
            self.token = try await fixture.keys.token(email, expiresIn: expiresIn)
        }
    }

    /// A caller with any bearer token.
    init(_ fixture: GatewayFixture, bearer token: String) {
        self.fixture = fixture
        gateway = 0
        email = ""
        self.token = token
        clientID = UUID()
    }

    /// The same device with other gateways, after an interruption of its stream.
    ///
    /// - Parameter token: `nil`: a new one.
    init(_ device: GatewayDevice, at fixture: GatewayFixture, token: String? = nil) async throws {
        try await self.init(fixture, device.email, clientID: device.clientID, token: token)
        (copy, phone, cursors) = (await device.copy, await device.phone, await device.cursors)
        (opened, resets, sequence) = (await device.opened, await device.resets, await device.sequence)
    }

    nonisolated func request(_ method: String, _ path: String, _ body: String? = nil, at other: Int? = nil) -> Request {
        Request(
            method, fixture.url(path, gateway: other ?? gateway),
            headers: [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")],
            body: body.map { Array($0.utf8) }, totalMax: patienceMax)
    }

    // MARK: Mutations

    /// Sends mutations unchanged, and retries while the gateway is busy: it gives up after too many conflicts.
    func send(_ mutations: [String], client: UUID? = nil, at other: Int? = nil) async throws -> GatewayResponse {
        let end = ContinuousClock.now + patienceMax
        while true {
            let response = try await sendOnce(mutations, client: client, at: other)
            guard response.status == 503, .now < end else { return response }
        }
    }

    func sendOnce(_ mutations: [String], client: UUID? = nil, at other: Int? = nil) async throws -> GatewayResponse {
        let body = "{\"clientId\":\"\(client ?? clientID)\",\"mutations\":[\(mutations.joined(separator: ","))]}"
        return GatewayResponse(try await fixture.client.send(request("POST", "/v1/mutations", body, at: other)))
    }

    /// Returns the next mutation's JSON, by default for the person's own realm.
    func mutation(
        _ op: String, _ id: UUID, _ fields: String? = nil, kind: String = "TimeEntry", in other: String? = nil
    ) -> String {
        sequence += 1
        let tail = fields.map { ",\"fields\":\($0)" } ?? ""
        return """
            {"sequence":\(sequence),"realm":"\(other ?? realm)","op":"\(op)","kind":"\(kind)","id":"\(id)"\(tail)}
            """
    }

    // MARK: Sync

    private func syncBody(live: Bool, naming names: [String] = [], only realms: [String]? = nil) -> String {
        _ = phone.syncRequest(isLive: live, only: realms.map { Set($0.compactMap { RealmPath($0) }) })
        let previous = cursors
        if let realms {
            // Realms that are not listed are discarded.
            opened.formIntersection(realms)
            cursors = cursors.filter { realms.contains($0.key) }
            copy = copy.filter { realms.contains($0.key) }
        }
        let held = cursors.map { "\"\($0)\":\"\($1)\"" }
        let named = names.filter { cursors[$0] == nil }.map {
            "\"\($0)\":\(previous[$0].map { "\"\($0)\"" } ?? "null")"
        }
        let members = (held + named).joined(separator: ",")
        let only = realms.map { ",\"only\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]" } ?? ""
        return "{\"realms\":{\(members)}\(only),\"live\":\(live)}"
    }

    /// Brings the copy up to date.
    ///
    /// - Parameters:
    ///   - names: Further realms to name.
    ///   - only: The only realms to open.
    func sync(naming names: [String] = [], only realms: [String]? = nil) async throws {
        let body = syncBody(live: false, naming: names, only: realms)
        let response = try await fixture.client.send(request("POST", "/v1/sync", body))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        for line in response.body.split(separator: UInt8(ascii: "\n")) { try apply(Array(line)) }
    }

    /// Reads `count` lines and then disconnects.
    func syncInterrupted(afterLines count: Int) async throws {
        let response = try await fixture.client.stream(request("POST", "/v1/sync", syncBody(live: false)))
        var left = count
        for try await line in response.body.lines(bytesMax: 1 << 20) {
            try apply(line)
            left -= 1
            if left == 0 { return }
        }
    }

    /// Follows the stream until the task is cancelled, the server ends it, or the given number of checkpoints has
    /// arrived.
    ///
    /// - Parameters:
    ///   - names: Further realms to name.
    ///   - only: The only realms to open.
    func follow(
        untilCheckpoints count: Int = .max, naming names: [String] = [], only realms: [String]? = nil
    ) async throws {
        let start = checkpointCount
        let body = syncBody(live: true, naming: names, only: realms)
        let response = try await fixture.client.stream(request("POST", "/v1/sync", body))
        try #require(response.status == 200)
        for try await line in response.body.lines(bytesMax: 1 << 20) {
            try apply(line)
            if checkpointCount - start >= count { return }
        }
    }

    private func apply(_ line: [UInt8]) throws {
        lineCount += 1
        if let line = try SyncLine.read(line) { _ = phone.take(line) }
        if line.count > 262_144 { linesTooLong += 1 }
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: [String: Any]])
        let (key, value) = try #require(object.first)
        #expect(object.count == 1)
        switch key {
        case "open": try open(value)
        case "closed":
            let realm = try #require(value["realm"] as? String)
            closed.append(realm)
            copy[realm] = nil
            cursors[realm] = nil
            opened.remove(realm)
        case "objects": try store(value)
        case "checkpoint":
            checkpoint = try #require(value["position"] as? Int)
            checkpointCount += 1
            try resume(value)
            comparePhone()
        case "keepalive":
            keepaliveCount += 1
            try resume(value)
        default: Issue.record("unknown line \(key)")
        }
    }

    /// One cursor applies to all open realms, which are listed unless there are many.
    private func resume(_ value: [String: Any]) throws {
        let cursor = try #require(value["cursor"] as? String)
        cursors = opened.reduce(into: [:]) { $0[$1] = cursor }
        let named = value["cursors"] as? [String: String]
        #expect(opened.count > SyncLines.namedCountMax ? named == nil : named == cursors)
    }

    /// At a checkpoint, the library has the same state.
    private func comparePhone() {
        let held = phone.copy.contents.map { path, content in
            (path.description, Set(content.map { "\($0.kind.rawValue)/\($0.id.text) \($1.position)" }))
        }
        let expected = copy.filter { opened.contains($0.key) }.mapValues { objects in
            Set(objects.filter { $0.value.fields != nil }.map { "\($0) \($1.position)" })
        }
        let shown = Dictionary(uniqueKeysWithValues: held).filter { !$0.value.isEmpty }
        #expect(shown == expected.filter { !$0.value.isEmpty })
        #expect(phone.copy.position == Int64(checkpoint))
    }

    private func open(_ value: [String: Any]) throws {
        let realm = try #require(value["realm"] as? String)
        opened.insert(realm)
        guard value["reset"] as? Bool == true else { return }
        if realm != "/common" { resets.append(realm) }
        copy[realm] = [:]
        cursors[realm] = nil
    }

    private func store(_ value: [String: Any]) throws {
        let realm = try #require(value["realm"] as? String)
        for (key, object) in try StreamedObject.list(value) {
            highest[realm] = max(highest[realm] ?? 0, object.position)
            if let held = copy[realm]?[key], held.position >= object.position { repeats.append(key) }
            copy[realm, default: [:]][key] = object
        }
        cursors[realm] = try #require(value["cursor"] as? String)
        mostHeld[realm] = max(mostHeld[realm] ?? 0, copy[realm]?.count ?? 0)
    }

    /// The objects of a realm that are not deleted.
    func shown(_ realm: String) -> [String: String] { (copy[realm] ?? [:]).compactMapValues(\.fields) }

    /// Waits for a condition on the device.
    func wait(_ what: String, _ condition: @Sendable (isolated GatewayDevice) -> Bool) async throws {
        let deadline = ContinuousClock.now + patienceMax
        while !condition(self) {
            guard ContinuousClock.now < deadline else {
                Issue.record("timeout: \(what)")
                throw CancellationError()
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}

/// A response of the API as JSON.
struct GatewayResponse: Sendable {
    let status: Int
    let body: String
    let headers: Headers

    init(_ response: Response) {
        status = response.status
        body = String(decoding: response.body, as: UTF8.self)
        headers = response.headers
    }

    var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }

    /// The problem's name, without its prefix.
    var problem: String? { (json["type"] as? String).map(Self.name) }

    /// The position or the problem's name, per mutation.
    var results: [String] {
        (json["results"] as? [[String: Any]] ?? []).map { result in
            if let accepted = result["accepted"] as? [String: Any] {
                return "accepted \(accepted["position"] as? Int ?? -1)"
            }
            let rejected = result["rejected"] as? [String: Any]
            return (rejected?["type"] as? String).map(Self.name) ?? "?"
        }
    }

    private static func name(_ type: String) -> String {
        type.replacingOccurrences(of: "urn:fieldpost:problem:", with: "")
    }
}

/// The stored objects of a realm.
extension GatewayFixture {
    func object(_ key: ObjectKey) throws -> RealmObject {
        try withDatabase { try RealmObject.stored(key, in: environment, on: &$0) }
    }

    func stored(_ realm: String) throws -> [String: String] {
        let objects = try withDatabase { connection in
            let rows = try connection.run(
                """
                SELECT o.kind, o.id::text, o.fields FROM realm.object o JOIN realm.realm r ON r.id = o.realm_id
                WHERE r.path = \(realm) AND NOT o.deleted
                """)
            return try rows.map { row in
                (
                    "\(try row.value(0, as: String.self))/\(try row.value(1, as: String.self))",
                    try row.value(2, as: JSONBytes.self).bytes
                )
            }
        }
        var stored: [String: String] = [:]
        for (key, bytes) in objects {
            let value = try JSONSerialization.jsonObject(with: Data(bytes))
            stored[key] = try StreamedObject.text(value)
        }
        return stored
    }

    /// Returns a realm's entries like `stored`, without the fields of the status log.
    func entries(_ realm: String) throws -> [String: String] {
        try stored(realm).filter { $0.key.hasPrefix("TimeEntry/") }.mapValues(Self.withoutLog)
    }

    static func withoutLog(_ entry: String) -> String {
        entry.replacingOccurrences(of: #","statusAt":"[^"]*""#, with: "", options: .regularExpression)
    }
}
