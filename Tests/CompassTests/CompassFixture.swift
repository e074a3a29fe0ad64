import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import HTTPClient
import TestSupport
import Testing

@testable import Sandbox

/// An emulator of its own with two people, and clients connected to it.
struct CompassFixture: EmulatorClient {
    let client = Client()
    let url: String
    let system: CompassSystem

    static let ana = CompassAccount.password(user: "ana", password: "secret-of-ana")
    static let bo = CompassAccount.password(user: "bo", password: "secret-of-bo")
    static let anasToken = CompassAccount.personalAccessToken("cGF0LW9mLWFuYQ==")
    static let service = CompassAccount.password(user: "fieldpost", password: "secret-of-all")

    static let organisation = CompassOrganisation(
        users: [
            CompassUser(name: "ana", fullName: "Ana", password: "secret-of-ana", tokens: ["cGF0LW9mLWFuYQ=="]),
            CompassUser(name: "bo", fullName: "Bo", password: "secret-of-bo"),
            CompassUser(name: "fieldpost", password: "secret-of-all", isService: true),
        ], projects: ["Harbour": ["Cranes", "Piers"], "Overhead": ["Meetings"]])

    /// Runs `body` against a new emulator and stops the emulator afterwards.
    ///
    /// - Parameter state: The file of committed records; with one, no people are loaded.
    static func run(state: String? = nil, _ body: (CompassFixture) async throws -> Void) async throws {
        let emulator = try CompassEmulator(state: state)
        if state == nil { emulator.system.load(organisation) }
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            try await body(CompassFixture(url: "http://127.0.0.1:\(port)", system: emulator.system))
        }
    }

    var settings: CompassSettings { CompassSettings(serverURL: url, repository: "CCMRepo", database: "SAMPL") }

    func compass(
        as account: CompassAccount = Self.ana, _ change: (inout CompassSettings) -> Void = { _ in }
    ) -> CompassClient {
        var settings = settings
        change(&settings)
        return CompassClient(settings, as: account, client: client)
    }

    // MARK: Calls

    static let values = [FieldValue("Headline", "Ægir's \"crane\""), FieldValue("Severity", "3-Average")]

    /// A record that `compass` saves.
    func record(_ compass: CompassClient, _ values: [FieldValue] = values) async throws -> String {
        try await compass.create(before: .never).commit(values, before: .never).id
    }

    /// A query in the account's own folder.
    func query(
        _ compass: CompassClient, _ columns: [String], _ conditions: [QueryFilter.Condition] = [],
        name: String = "Q"
    ) async throws -> QueryDefinition {
        let folder = try #require(try await compass.folder(at: [Folder.personalQueries]))
        return try await compass.create(
            QueryDefinition(
                name: name, folder: folder.id, recordType: "Defect",
                columns: columns.map { QueryDefinition.Column($0) }, filter: QueryFilter(.all, conditions)))
    }

    // MARK: Requests of the vendor's sample app

    /// Sends a request as the app does, and returns the response's status and body.
    func send(
        _ method: String, _ path: String, token: String? = nil, _ json: String? = nil
    ) async throws -> (status: Int, body: String) {
        var headers = [(name: "Content-Type", value: "application/json")]
        if let token { headers.append((name: "Authorization", value: "Bearer " + token)) }
        let response = try await client.send(
            Request(method, url + "/ccmweb/rest" + path, headers: headers, body: json.map { Array($0.utf8) }))
        return (response.status, String(decoding: response.body, as: UTF8.self))
    }

    func token() async throws -> String {
        struct Token: Decodable { let token: String }
        let answer = try await send(
            "POST", "/authenticate",
            #"{"username": "ana", "password": "secret-of-ana", "repo": "CCMRepo", "db": "SAMPL"}"#)
        try #require(answer.status == 201)
        return try JSONDecoder().decode(Token.self, from: Data(answer.body.utf8)).token
    }

    static let database = "/repos/CCMRepo/databases/SAMPL"
}
