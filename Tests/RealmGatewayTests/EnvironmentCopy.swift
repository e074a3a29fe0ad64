import Access
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// An integration's copy of its environment: one stream, one cursor.
///
/// Deliberately not `DeviceClient`, which has a cursor per realm of a person and no stream of an environment. It also
/// stores what only tests need: tombstones, repeats, and the state at every cursor.
actor EnvironmentCopy {
    /// A cursor of the stream, and the copy at that point.
    struct Snapshot: Sendable {
        var cursor: String
        var copy: [String: [String: StreamedObject]]
    }

    private let caller: GatewayDevice
    private let kinds: [String]?
    private let recordsSnapshots: Bool
    /// By realm, then by kind and id.
    private(set) var copy: [String: [String: StreamedObject]] = [:]
    private(set) var cursor: String?
    private(set) var snapshots: [Snapshot] = []
    private(set) var resetCount = 0
    private(set) var checkpoint = -1
    private(set) var checkpointCount = 0
    private(set) var keepaliveCount = 0
    private(set) var lineCount = 0
    private(set) var requestCount = 0
    /// Positions since the stream continued in the change log, in the order of arrival.
    private(set) var logged: [Int] = []
    /// Objects that arrived although the copy had the same or a newer version.
    private(set) var repeats: [String] = []

    init(_ fixture: GatewayFixture, key: String, kinds: [Kind]? = nil, recordsSnapshots: Bool = false) {
        caller = GatewayDevice(fixture, bearer: key)
        self.kinds = kinds?.map(\.rawValue)
        self.recordsSnapshots = recordsSnapshots
    }

    /// Restores an earlier snapshot.
    func resume(from snapshot: Snapshot) {
        (cursor, copy) = (snapshot.cursor, snapshot.copy)
        checkpoint = -1
    }

    private func request(live: Bool) -> Request {
        let kinds = kinds.map { ",\"kinds\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]" } ?? ""
        let cursor = cursor.map { "\"\($0)\"" } ?? "null"
        requestCount += 1
        return caller.request(
            "POST", "/v1/sync", "{\"all\":true\(kinds),\"cursor\":\(cursor),\"live\":\(live)}")
    }

    /// Brings the copy up to date.
    func sync() async throws {
        let response = try await caller.fixture.client.send(request(live: false))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        for line in response.body.split(separator: UInt8(ascii: "\n")) { try apply(Array(line)) }
    }

    /// Follows the stream until the task is cancelled, the server ends it, or `count` lines have arrived.
    ///
    /// - Returns: Whether the client disconnected.
    @discardableResult
    func follow(untilLines count: Int = .max, live: Bool = true) async throws -> Bool {
        let response = try await caller.fixture.client.stream(request(live: live))
        try #require(response.status == 200)
        var remaining = count
        for try await line in response.body.lines(bytesMax: 1 << 20) {
            try apply(line)
            remaining -= 1
            if remaining == 0 { return true }
        }
        return false
    }

    private func apply(_ line: [UInt8]) throws {
        lineCount += 1
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: [String: Any]])
        let (sort, value) = try #require(object.first)
        switch sort {
        case "open":
            #expect(value["all"] as? Bool == true && value["realm"] == nil)
            guard value["reset"] as? Bool == true else { return }
            resetCount += 1
            (copy, cursor) = ([:], nil)
        case "objects": try store(value)
        case "checkpoint", "keepalive":
            #expect(value["cursors"] == nil)
            checkpoint = try #require(value["position"] as? Int)
            if sort == "checkpoint" { checkpointCount += 1 } else { keepaliveCount += 1 }
            try go(to: value)
        default: Issue.record("unknown line \(sort)")
        }
    }

    private func store(_ value: [String: Any]) throws {
        let realm = try #require(value["realm"] as? String)
        let isLog = try #require(value["cursor"] as? String).split(separator: ":").count == 4
        for (key, object) in try StreamedObject.list(value) {
            if isLog { logged.append(object.position) }
            if let held = copy[realm]?[key], held.position >= object.position { repeats.append(key) }
            copy[realm, default: [:]][key] = object
        }
        try go(to: value)
    }

    private func go(to value: [String: Any]) throws {
        let cursor = try #require(value["cursor"] as? String)
        if recordsSnapshots, cursor != self.cursor { snapshots.append(Snapshot(cursor: cursor, copy: copy)) }
        self.cursor = cursor
    }

    /// The objects that are not deleted, by realm.
    var shown: [String: [String: String]] {
        copy.mapValues { $0.compactMapValues(\.fields) }.filter { !$0.value.isEmpty }
    }

    /// Waits for a condition on the copy.
    func wait(_ what: String, _ condition: @Sendable (isolated EnvironmentCopy) -> Bool) async throws {
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

extension GatewayFixture {
    /// The stored objects of these kinds in all realms that an integration may open.
    func storedByRealm(_ kinds: [Kind]? = nil, in environment: Int32 = 1) throws -> [String: [String: String]] {
        let names = (kinds ?? Kind.allCases.filter(Permissions.isReadByIntegrations)).map(\.rawValue)
        let objects = try withDatabase { connection in
            let rows = try connection.run(
                """
                SELECT r.path, o.kind, o.id::text, o.fields
                FROM realm.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment) AND NOT o.deleted AND o.kind = ANY (\(names))
                """)
            return try rows.map { row in
                (
                    try row.value(0, as: String.self),
                    "\(try row.value(1, as: String.self))/\(try row.value(2, as: String.self))",
                    try row.value(3, as: JSONBytes.self).bytes
                )
            }
        }
        var stored: [String: [String: String]] = [:]
        for (path, key, bytes) in objects where RealmPath(path)?.realmClass != .system {
            let value = try JSONSerialization.jsonObject(with: Data(bytes))
            stored[path, default: [:]][key] = try StreamedObject.text(value)
        }
        return stored
    }

    func counter(of environment: Int32 = 1) throws -> EnvironmentCounter {
        try withDatabase { connection in
            try EnvironmentCounter(
                try connection.run(EnvironmentCounter.load(EnvironmentID(rawValue: environment)))[0])
        }
    }
}

/// An object as a stream sent it.
struct StreamedObject: Equatable, Sendable {
    var position: Int
    /// `nil`: a tombstone.
    var fields: String?

    /// Returns the objects of an `objects` line, by kind and id.
    static func list(_ line: [String: Any]) throws -> [(key: String, object: StreamedObject)] {
        let list = try #require(line["list"] as? [[String: Any]])
        #expect(list.count <= 500 && !list.isEmpty)
        return try list.map { item in
            let key = "\(try #require(item["kind"] as? String))/\(try #require(item["id"] as? String))"
            let fields = try item["fields"].map { try text($0) }
            #expect(fields != nil || item["deleted"] as? Bool == true)
            return (key, StreamedObject(position: try #require(item["position"] as? Int), fields: fields))
        }
    }

    /// Returns fields as JSON with sorted keys.
    static func text(_ fields: Any) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: fields, options: .sortedKeys), as: UTF8.self)
    }
}
