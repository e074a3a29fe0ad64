import Crypto
import Essentials
import Foundation
import Model
import ObjectStore
import Postgres

/// One numbered file of SQL.
struct SchemaFile {
    let number: Int32
    /// `001-foundation.sql`
    let name: String
    let text: String
    /// SHA-256, in hexadecimal digits.
    let checksum: String

    /// A statement, from a line `-- steps: SELECT …`, that is repeated before the file is applied, each time in its own
    /// transaction, until it returns no row. It can be interrupted at any time. Rows: number done, approximate total.
    var steps: String? { directive("-- steps: ") }

    /// The condition from a line `-- finish: …` under which the file may be applied to a database in use.
    var finishesWhen: String? { directive("-- finish: ") }

    private func directive(_ start: String) -> String? {
        let first = text.prefix { $0 != "\n" }
        return first.hasPrefix(start) ? String(first.dropFirst(start.count)) : nil
    }

    /// The folder's files in the order of their numbers.
    ///
    /// - Throws: `CommandFailure` if there are none, or if a number is missing, duplicate or malformed.
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
                throw CommandFailure("\(folder)/\(name): the name of a schema file must be like 001-foundation.sql")
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

    /// Checksums of other released forms of files. Later files remove the differences; both forms of 017 have the same
    /// result.
    static let otherForms: [String: String] = [
        "002-onboarding.sql": "2c84a385347c0608f3a71fbf63f1a235cf208681949dbeddb2268a661310ca8c",
        "003-permissions.sql": "041dd97848fe6c51ad2c61d1cf0021f759f9065499a5186d6c47b74a1bd804da",
        "005-audiences.sql": "e3b22f11aeb4878142f3da8ef3014c9eaa015b9d48e0f04473aa0250c570ff6f",
        "017-copied.sql": "56aaa084913213dcafc6a2f19a8c103b61d5587b4d2ed83326e43035942a4222",
    ]

    private static let lockKey: Int64 = 0x6669_656c_646d_6967
    /// Lock timeout of a migration's statement. Other sessions wait behind it no longer than this; then it lets them
    /// proceed, and retries.
    private static let lockMax = Duration.milliseconds(200)
    private static let attemptsMax = 300

    /// - Parameters:
    ///   - finishes: Whether to apply files that need `--finish`. A new database always gets them.
    ///   - show: Called after each step of a file with the progress.
    /// - Returns: All files that are applied afterwards.
    /// - Throws: Before anything is applied: if a file was edited after it was applied, or the database or folder is
    ///   newer than this program.
    static func run(
        _ files: [SchemaFile], finishes: Bool = false, on connection: inout Connection,
        show: (MigrationSteps, _ isLast: Bool) -> Void = { _, _ in }
    ) throws -> [Applied] {
        try connection.run("SELECT pg_advisory_lock(\(lockKey))")
        try connection.run("SELECT set_config('lock_timeout', \(String(lockMax.milliseconds)), false)")
        if let newest = files.last, newest.number > Schema.version {
            throw CommandFailure("\(newest.name) is newer than this program, which supports schema \(Schema.version)")
        }
        let before = try load(on: &connection)
        for row in before { try check(row, files) }
        for file in files.dropFirst(before.count) {
            if file.finishesWhen != nil, !finishes, !before.isEmpty { break }
            if let steps = file.steps { try runSteps(Statement(stringLiteral: steps), of: file, on: &connection, show) }
            // Number, name and checksum consist of digits and small letters: they can be part of the text.
            let record = """
                ;
                INSERT INTO realm.migration (number, name, checksum)
                VALUES (\(file.number), '\(file.name)', '\(file.checksum)')
                """
            try retrying(file, &connection) { connection throws(PostgresError) in
                try connection.runScript(file.text + record)
            }
        }
        try addKinds(on: &connection)
        let after = try load(on: &connection).map { row in
            Applied(
                number: row.number, file: row.name, appliedAt: row.time.description, isNew: row.number > before.count)
        }
        try connection.run("SELECT pg_advisory_unlock(\(lockKey))")
        return after
    }

    /// - Throws: `CommandFailure` with the file's name.
    private static func retrying<Success>(
        _ file: SchemaFile, _ connection: inout Connection, _ body: (inout Connection) throws(PostgresError) -> Success
    ) throws -> Success {
        var attempt = 1
        while true {
            do {
                return try body(&connection)
            } catch {
                guard error.isLocked || error.sqlState == "40P01", attempt < attemptsMax else {
                    throw CommandFailure("\(file.name): \(error.message)\(error.detail.map { " (\($0))" } ?? "")")
                }
                attempt += 1
                try connection.run("SELECT pg_sleep(0.2)")
            }
        }
    }

    private static func runSteps(
        _ statement: Statement, of file: SchemaFile, on connection: inout Connection,
        _ show: (MigrationSteps, _ isLast: Bool) -> Void
    ) throws {
        var steps = MigrationSteps(file: file.name)
        while true {
            let start = ContinuousClock.now
            let row = try retrying(file, &connection) { connection throws(PostgresError) in
                try connection.run(statement).first?.decode(Int64.self, Int64.self)
            }
            guard let row else {
                if steps.count > 0 { show(steps, true) }
                return
            }
            steps.add(done: row.0, total: row.1, took: .now - start)
            show(steps, false)
        }
    }

    /// Adds the names of this program's kinds. A number that another kind has is a programming error.
    private static func addKinds(on connection: inout Connection) throws {
        guard try connection.run("SELECT to_regclass('realm.kind') IS NOT NULL")[0].decode(Bool.self) else { return }
        let kinds = Kind.allCases
        let taken = try connection.run(
            """
            SELECT k.name FROM realm.kind k
            JOIN unnest(\(kinds.map(\.rawValue))) AS b(name) ON lower(k.name) = lower(b.name)
            WHERE k.number >= \(OwnKind.numbers.lowerBound) ORDER BY k.name
            """
        ).decode(String.self)
        if let name = taken.first {
            throw CommandFailure(
                "an environment declares the kind \(name), which this version has itself: with the earlier version, "
                    + "declare it under another name, and copy its objects")
        }
        try connection.run(
            """
            INSERT INTO realm.kind (number, name)
            SELECT number, name FROM unnest(\(kinds.map(\.number)), \(kinds.map(\.rawValue))) AS k(number, name)
            WHERE NOT EXISTS (SELECT FROM realm.kind k2 WHERE k2.number = k.number AND k2.name = k.name)
            """)
    }

    private typealias Row = (number: Int32, name: String, checksum: String, time: Timestamp)

    private static func load(on connection: inout Connection) throws -> [Row] {
        let exists = try connection.run("SELECT to_regclass('realm.migration') IS NOT NULL")[0].decode(Bool.self)
        guard exists else { return [] }
        return try connection.run("SELECT number, name, checksum, applied_at FROM realm.migration ORDER BY number")
            .decode(Int32.self, String.self, String.self, Timestamp.self)
            .map { (number: $0, name: $1, checksum: $2, time: $3) }
    }

    private static func check(_ row: Row, _ files: [SchemaFile]) throws {
        guard row.number <= Schema.version else {
            throw CommandFailure(
                "the database has schema \(row.number), this program supports \(Schema.version): use a newer program")
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

/// The progress of a schema file's steps.
struct MigrationSteps {
    let file: String
    private(set) var done: Int64 = 0
    /// Approximate, from the database's statistics.
    private(set) var total: Int64 = 0
    private(set) var count = 0
    private(set) var longest = Duration.zero

    init(file: String) { self.file = file }

    mutating func add(done: Int64, total: Int64, took: Duration) {
        self.done = done
        self.total = max(total, done)
        count += 1
        longest = max(longest, took)
    }

    var text: String {
        let share = total == 0 ? 100 : done * 100 / total
        return "\(file): \(done) of about \(total) (\(share) %), \(count) steps, "
            + "the longest \(longest.milliseconds) ms"
    }
}
