import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Fieldpost

/// An environment without a back end, and helpers to import files into it.
struct ImportFixture {
    let conninfo: String
    let environment: EnvironmentID

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        environment = try EnvironmentRows(domains: ["acme.example"]).insert(on: &connection)
    }

    /// Runs `fieldpost import` with a file of these lines.
    func bring(_ what: String, _ lines: [String], _ options: [String] = []) throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("lines")
            try lines.map { $0 + "\n" }.joined().write(to: file, atomically: true, encoding: .utf8)
            result = try run(what, file.path, options)
        }
        return try #require(result)
    }

    func run(_ what: String, _ path: String, _ options: [String] = []) throws -> CommandResult {
        try fieldpost(["import", what, path] + options, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    func query(_ statement: Statement) throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(statement).map { try $0.value(0, as: String.self) }
    }

    func position() throws -> [String] { try query("SELECT position::text FROM realm.environment") }

    /// Returns all stored objects by realm, kind and id; without positions.
    func objects() throws -> [String] {
        try query(
            """
            SELECT concat_ws(' ', r.path, o.kind, o.id, o.deleted, o.fields)
            FROM store.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            ORDER BY 1
            """)
    }

    /// Deletes the objects with this id, as a service does.
    func delete(_ kind: Kind, _ id: UUID) throws {
        var connection = try Connection(conninfo)
        var batch = WriteBatch(environment: environment)
        let rows = try connection.run("SELECT realm_id FROM store.object WHERE kind = \(kind) AND id = \(id)")
        for realm in try rows.decode(Int32.self) {
            batch.delete(ObjectKey(realm: realm, kind: kind, id: id), decision: 0)
        }
        _ = try batch.commit(on: &connection)
    }

    /// Writes to a pipe on a separate thread.
    static func feed(_ pipe: URL, _ lines: [String]) {
        let bytes = Data(lines.map { $0 + "\n" }.joined().utf8)
        Thread.detachNewThread { try? FileHandle(forWritingTo: pipe).write(contentsOf: bytes) }
    }

    /// The counts in the output of a run with `--json`.
    static func figures(_ result: CommandResult) throws -> [String: Int] {
        let all = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        return all.compactMapValues { $0 as? Int }
    }

    /// Returns a line for `import objects`.
    static func line(
        _ realm: String, _ kind: Kind, _ id: UUID, _ fields: String, more: String = ""
    ) -> String {
        #"{"realm": "\#(realm)", "kind": "\#(kind.rawValue)", "id": "\#(id.uuidString)", \#(more)"fields": \#(fields)}"#
    }

    static func task(_ number: Int, team: UUID? = nil) -> String {
        let id = UUID(uuid: (1, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)))
        let team = team.map { #", "team": "\#($0.uuidString)""# } ?? ""
        return line("/manager", .fieldTask, id, #"{"title": "Task \#(number)"\#(team)}"#)
    }
}
