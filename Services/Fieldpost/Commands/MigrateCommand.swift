import ArgumentParser
import Crypto
import Environments
import Essentials
import FoundationEssentials
import Model
import Postgres
import Realms

/// `fieldpost migrate`: brings the database's schema to this program's version.
struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the database's schema to this program's version.")

    @Option(help: "Folder of the schema files. (default: FIELDPOST_SCHEMA or deploy/schema)") var schema: String?
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let folder = schema ?? ProcessInfo.processInfo.environment["FIELDPOST_SCHEMA"] ?? "deploy/schema"
        let files = try SchemaFile.read(folder)
        var limits = Limits()
        limits.statementMax = .seconds(600)
        // Another migration may be under way: this one waits for it.
        limits.lockMax = .seconds(120)
        var connection = try database.connect(limits, check: nil)
        let applied = try Migration.run(files, on: &connection)
        let new = applied.filter(\.isNew).map(\.file)
        if !new.isEmpty {
            try connection.run(Administrator.audit(.schemaMigrated, new.joined(separator: " "), in: nil))
        }
        var table = Table(
            [("NUMBER", .right), ("FILE", .left), ("APPLIED AT", .left), ("STATE", .left)], empty: "no schema files")
        for row in applied {
            table.add([String(row.number), row.file, row.appliedAt, row.isNew ? "applied now" : "there"])
        }
        try output.show(applied, table)
    }
}

/// One numbered file of SQL.
struct SchemaFile {
    let number: Int32
    /// `001-foundation.sql`
    let name: String
    let text: String
    /// SHA-256, in hexadecimal digits.
    let checksum: String

    /// The folder's files in the order of their numbers.
    ///
    /// - Throws: `CommandFailure` when there are none, or when a number is missing, given twice or not one.
    static func read(_ folder: String) throws -> [SchemaFile] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
            throw CommandFailure("there is no folder \(folder); give --schema")
        }
        var files: [SchemaFile] = []
        for name in names.filter({ $0.hasSuffix(".sql") }).sorted() {
            let digits = name.prefix { $0.isASCII && $0.isNumber }
            let allowed = name.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (97...122).contains(byte) || byte == 45 || byte == 46
            }
            guard digits.count == 3, name.dropFirst(3).first == "-", allowed, let number = Int32(digits) else {
                throw CommandFailure("\(folder)/\(name): a schema file is named as 001-foundation.sql is")
            }
            guard number == files.count + 1 else {
                throw CommandFailure("\(folder)/\(name): expected number \(files.count + 1)")
            }
            let bytes = try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))
            let checksum = SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            files.append(
                SchemaFile(number: number, name: name, text: String(decoding: bytes, as: UTF8.self), checksum: checksum)
            )
        }
        guard !files.isEmpty else { throw CommandFailure("there are no schema files in \(folder); give --schema") }
        return files
    }
}

/// Applies schema files, each once and in its own transaction.
enum Migration {
    struct Applied: Encodable {
        let number: Int32
        let file: String
        let appliedAt: String
        var isNew: Bool
    }

    /// Checksums of other forms in which files were released. What differs, later files make the same.
    static let otherForms: [String: String] = [
        "002-onboarding.sql": "2c84a385347c0608f3a71fbf63f1a235cf208681949dbeddb2268a661310ca8c",
        "003-permissions.sql": "041dd97848fe6c51ad2c61d1cf0021f759f9065499a5186d6c47b74a1bd804da",
        "005-audiences.sql": "e3b22f11aeb4878142f3da8ef3014c9eaa015b9d48e0f04473aa0250c570ff6f",
    ]

    private static let lockKey: Int64 = 0x6669_656c_646d_6967

    /// - Returns: All that is applied afterwards.
    /// - Throws: Before anything is applied: for a file edited since it was applied, and for a database or a folder
    ///   that is newer than this program.
    static func run(_ files: [SchemaFile], on connection: inout Connection) throws -> [Applied] {
        try connection.run("SELECT pg_advisory_lock(\(lockKey))")
        if let newest = files.last, newest.number > Schema.version {
            throw CommandFailure("\(newest.name) is newer than this program, which knows schema \(Schema.version)")
        }
        let before = try load(on: &connection)
        for row in before { try check(row, files) }
        for file in files.dropFirst(before.count) {
            // Number, name and checksum consist of digits and small letters: they can be part of the text.
            let record = """
                ;
                INSERT INTO realm.migration (number, name, checksum)
                VALUES (\(file.number), '\(file.name)', '\(file.checksum)')
                """
            do {
                try connection.runScript(file.text + record)
            } catch {
                throw CommandFailure("\(file.name): \(error.message)\(error.detail.map { " (\($0))" } ?? "")")
            }
        }
        let after = try load(on: &connection).map { row in
            Applied(
                number: row.number, file: row.name, appliedAt: row.time.description,
                isNew: row.number > before.count)
        }
        try connection.run("SELECT pg_advisory_unlock(\(lockKey))")
        return after
    }

    private struct Row {
        let number: Int32
        let name: String
        let checksum: String
        let time: Timestamp
    }

    private static func load(on connection: inout Connection) throws -> [Row] {
        let isThere = try connection.run("SELECT to_regclass('realm.migration') IS NOT NULL")[0].decode(Bool.self)
        guard isThere else { return [] }
        return try connection.run("SELECT number, name, checksum, applied_at FROM realm.migration ORDER BY number")
            .decode(Int32.self, String.self, String.self, Timestamp.self)
            .map { Row(number: $0, name: $1, checksum: $2, time: $3) }
    }

    private static func check(_ row: Row, _ files: [SchemaFile]) throws {
        guard row.number <= Schema.version else {
            throw CommandFailure(
                "the database has schema \(row.number), this program knows \(Schema.version): use a newer program")
        }
        guard let file = files.first(where: { $0.number == row.number }) else {
            throw CommandFailure("\(row.name) was applied to the database, but is not in the folder")
        }
        guard file.checksum == row.checksum || otherForms[file.name] == row.checksum else {
            throw CommandFailure(
                "\(file.name) was edited after it was applied; undo the edit and write a new file instead")
        }
    }
}
