package import Foundation
import Postgres

/// The project's folder, found from where this file was compiled.
package var projectFolder: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}

/// A database with the project's schema, and its connection string.
package func makeFoundationDatabase() throws -> String {
    let conninfo = try TestServer.shared.makeDatabase()
    var connection = try Connection(conninfo)
    let folder = projectFolder.appendingPathComponent("deploy/schema")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".sql") }
    for file in files.sorted() {
        let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
        let number = file.prefix { $0.isNumber }
        try connection.runScript(
            text + "\nINSERT INTO realm.migration (number, name, checksum) VALUES (\(number), '\(file)', '')")
    }
    return conninfo
}
