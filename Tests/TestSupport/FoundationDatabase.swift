package import Foundation
import Model
import Postgres

/// The project's folder, derived from the path of this source file.
package var projectFolder: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}

/// A database with the project's schema, and its connection string.
package func makeFoundationDatabase() throws -> String {
    try TestServer.shared.makeDatabase(from: foundation.get())
}

/// A copy of a database without sessions, like a backup of it.
package func copyDatabase(_ conninfo: String) throws -> String {
    func name() throws -> String {
        var connection = try Connection(conninfo)
        return try connection.run("SELECT current_database()")[0].decode(String.self)
    }
    return try TestServer.shared.makeDatabase(from: name())
}

/// The template of all test databases: copying it is much faster than running the schema files.
private let foundation = Result {
    let folder = projectFolder.appendingPathComponent("deploy/schema")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".sql") }
    return try TestServer.shared.makeTemplate("foundation") { connection in
        for file in files.sorted() {
            let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
            let number = file.prefix { $0.isNumber }
            try connection.runScript(
                text + "\nINSERT INTO realm.migration (number, name, checksum) VALUES (\(number), '\(file)', '')")
        }
        // As `fieldpost migrate` does.
        let kinds = Kind.allCases
        try connection.run(
            """
            INSERT INTO realm.kind (number, name)
            SELECT number, name FROM unnest(\(kinds.map(\.number)), \(kinds.map(\.rawValue))) AS k(number, name)
            WHERE NOT EXISTS (SELECT FROM realm.kind k2 WHERE k2.number = k.number)
            """)
    }
}
