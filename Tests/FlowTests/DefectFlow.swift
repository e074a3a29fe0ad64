import DeviceClient
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

/// A device that sends mutations, such as defect commands; while it is offline they stay in its queue.
struct DefectPhone {
    let phone: IntegrationPhone
    private let realm: RealmPath
    private var device = DeviceState(clientID: UUID())

    /// - Parameter issuer: The environment of the issuer; `nil`: the provider's own.
    init(_ cluster: LocalCluster, _ email: String, issuer: String? = nil) async throws {
        phone = try await IntegrationPhone(cluster, email, issuer: issuer)
        realm = try RealmPath.user(email)
    }

    /// - Returns: The command's id.
    @discardableResult
    mutating func handIn(_ command: DefectCommand) throws -> String {
        var command = command
        command.submitRequested = true
        let id = UUID()
        let all = try JSONSerialization.jsonObject(with: try JSONEncoder().encode(command)) as? [String: Any] ?? [:]
        let own = all.filter { DefectCommand.ownerNames.contains($0.key) }
        let fields = try JSONSerialization.data(withJSONObject: own)
        _ = try device.enqueue(
            Mutation(operation: .put, kind: .defectCommand, id: id, fields: Array(fields)), in: realm)
        return id.uuidString.lowercased()
    }

    /// Queues a mutation of an object, by default in the person's own realm.
    mutating func enqueue(
        _ operation: Mutation.Operation, _ kind: Kind, _ id: UUID, _ fields: (any Encodable)? = nil,
        restores: Bool = false, in path: RealmPath? = nil
    ) throws {
        let json = try fields.map { Array(try JSONEncoder().encode($0)) }
        _ = try device.enqueue(
            Mutation(operation: operation, kind: kind, id: id, fields: json, restores: restores), in: path ?? realm)
    }

    /// Goes online: the queue is sent, with retries.
    mutating func send() async throws {
        let deadline = ContinuousClock.now + .seconds(240)
        while let request = device.nextRequest() {
            try #require(ContinuousClock.now < deadline)
            let response = try? await phone.client.send(
                Request(
                    "POST", phone.cluster.gatewayURL + "/v1/mutations", headers: phone.headers, body: request.body))
            guard let response, let read = try QueueResponse.read(status: response.status, body: response.body) else {
                try await Task.sleep(for: .milliseconds(100))
                continue
            }
            _ = device.take(read, to: request, newClientID: UUID())
        }
    }

    /// Reads the changes of the person's realms into the device's copy.
    mutating func receive() async throws {
        let body = device.syncRequest(isLive: false)
        let response = try await phone.client.send(
            Request("POST", phone.cluster.gatewayURL + "/v1/sync", headers: phone.headers, body: body))
        try #require(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        for bytes in response.body.split(separator: UInt8(ascii: "\n")) {
            if let line = try SyncLine.read(Array(bytes)) { _ = device.take(line) }
        }
    }

    /// The details that the device displays, also offline.
    var details: DefectDetails { DefectDetails(realm: realm, in: device.contents) }

    /// A command as the device displays it; `nil` if it was deleted.
    func command(_ id: String) throws -> DefectCommand? {
        let object = UUID(uuidString: id).flatMap { device[realm, ObjectID(kind: .defectCommand, id: $0)] }
        return try object.map { try JSONDecoder().decode(DefectCommand.self, from: Data($0.fields)) }
    }

    /// The fields of the objects of a kind, by their ids.
    func objects(_ kind: Kind) async throws -> [String: [String: Any]] {
        let found = try await phone.read().filter { $0.kind == kind.rawValue }
        return Dictionary(found.map { ($0.id, $0.fields) }) { first, _ in first }
    }

    func storeLogin(_ user: String, _ password: String) async throws {
        let response = try await phone.client.send(
            Request(
                "PUT", phone.cluster.gatewayURL + "/v1/credentials/compass", headers: phone.headers,
                body: Array(#"{"user": "\#(user)", "password": "\#(password)"}"#.utf8)))
        try #require(response.status == 204, "\(String(decoding: response.body, as: UTF8.self))")
    }
}

/// The Compass emulator, with its control side.
struct CompassSide: EmulatorClient {
    let cluster: LocalCluster
    let client = Client()

    var url: String { cluster.compassURL }

    /// A row of the history.
    struct Row: Decodable {
        let record, action, user, newState, headline: String
        let isDeleted: Bool
        let changes: [String: String]
    }

    func history() async throws -> [Row] { try await lines("/sandbox/history", as: Row.self) }

    /// Open edit sessions of records that are there.
    func openSessions() async throws -> Int {
        struct Session: Decodable { let isNew: Bool }
        return try await read("/sandbox/sessions", as: [Session].self).count { !$0.isNew }
    }

    /// Queries that were not removed.
    func openQueries() async throws -> Int {
        struct Query: Decodable { let name: String }
        return try await read("/sandbox/queries", as: [Query].self).count
    }
}
