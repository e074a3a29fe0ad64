import Foundation
import Model
import TestSupport
import Testing

/// Ownership of tables: the SQL on the tables of `access` and `backend` is in the modules that own these schemas.
@Suite struct TableTests {
    /// A statement outside the owning modules that names tables of `access` or `backend`.
    struct Exception: Sendable, CustomTestStringConvertible {
        let path: String
        let tables: Set<String>
        let reason: String

        var testDescription: String { path }
    }

    /// The modules that own the schemas `access` and `backend`.
    static let owners = ["Access", "Audit", "BackendConnections", "Secrets", "Tenants"].map { "Shared/Store/\($0)/" }

    static let exceptions = [
        Exception(
            path: "Services/BackendPoller/PollStore.swift", tables: ["backend.connection"],
            reason: "the intervals of all environments are compared with poll.run's times in one statement"),
        Exception(
            path: "Services/ChangeRelay/Retention/Retention.swift", tables: ["access.audit"],
            reason: "the name of a table whose rows a gauge counts; no statement reads it"),
        Exception(
            path: "Services/Fieldpost/Check/Reconciliation.swift",
            tables: ["backend.connection", "backend.defect_tracker"],
            reason: "a comparison is pending only if the environment has a back end or a defect tracker"),
        Exception(
            path: "Services/Fieldpost/Erasure/ErasureSubject.swift",
            tables: [
                "access.address", "access.audit", "access.person", "backend.defect_account", "backend.defect_login",
                "backend.person",
            ],
            reason: "a person is erased from all tables alike, and the report lists each"),
        Exception(
            path: "Services/Onboarding/DeviceStore.swift", tables: ["access.person", "access.provider"],
            reason: "a device is locked and compared with its person's account in one statement"),
        Exception(
            path: "Services/Onboarding/RealmWatch.swift", tables: ["access.provider"],
            reason: "which sessions are notified depends on whether unknown people are hidden"),
        Exception(
            path: "Services/Onboarding/SessionStore.swift",
            tables: ["access.provider", "backend.connection", "backend.person"],
            reason: "an attempt to log in is used up and read with its environment's settings in one statement, and "
                + "sessions are found by environment, through their index"),
        Exception(
            path: "Shared/Admin/TenantMigration/EnvironmentImport.swift", tables: ["access.audit"],
            reason: "imported records are renumbered by the target installation"),
        Exception(
            path: "Shared/Admin/TenantMigration/MoveActivation.swift", tables: ["access.integration", "access.person"],
            reason: "sequences start after the imported numbers"),
        Exception(
            path: "Shared/Admin/TenantMigration/MoveRemoval.swift",
            tables: ["access.address", "access.domain", "access.provider"],
            reason: "the redirect record for devices stays when the rest is removed"),
        Exception(
            path: "Shared/Admin/TenantMigration/MovedTable.swift",
            tables: [
                "access.address", "access.audit", "access.domain", "access.integration", "access.outline",
                "access.person", "access.provider", "backend.connection", "backend.defect_account",
                "backend.defect_login", "backend.defect_tracker", "backend.delivery", "backend.person",
            ],
            reason: "all tables of an environment are moved alike, row by row"),
        Exception(
            path: "Tools/Workbench/Bench/BenchDevices.swift", tables: ["access.person", "access.provider"],
            reason: "a benchmark logs in many devices at once, without an identity provider"),
        Exception(
            path: "Tools/Workbench/Up/UpStatements.swift",
            tables: [
                "access.domain", "access.person", "access.provider", "backend.connection", "backend.defect_tracker",
            ],
            reason: "only the workbench replaces emulators' addresses; a shipped module has no use for it"),
    ]

    @Test func onlyOwnersNameTablesOfAccessAndBackend() throws {
        let tables = try Self.tables(of: ["access", "backend"])
        #expect(tables.contains("access.provider") && tables.contains("backend.connection"))
        let allowed = Dictionary(uniqueKeysWithValues: Self.exceptions.map { ($0.path, $0.tables) })
        for file in SourceFile.all where !file.path.hasPrefix("Tests/") {
            guard !Self.owners.contains(where: file.path.hasPrefix) else { continue }
            let named = tables.intersection(file.tablesInTexts())
            let strange = named.subtracting(allowed[file.path] ?? [])
            #expect(strange.isEmpty, "\(file.path): the SQL of \(strange.sorted()) belongs to one of \(Self.owners)")
        }
    }

    @Test(arguments: exceptions) func exceptionIsNeeded(exception: Exception) {
        let file = SourceFile.all.first { $0.path == exception.path }
        #expect(file?.tablesInTexts().isSuperset(of: exception.tables) == true)
    }

    /// The tables of schemas, as the schema's files make them.
    private static func tables(of schemas: Set<Substring>) throws -> Set<String> {
        let folder = projectFolder.appendingPathComponent("deploy/schema")
        var tables: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            for match in (projectText("deploy/schema/\(file)") ?? "").matches(of: /CREATE TABLE ([a-z]+)\.([a-z_]+)/)
            where schemas.contains(match.1) {
                tables.insert("\(match.1).\(match.2)")
            }
        }
        return tables
    }
}

extension SourceFile {
    /// Returns table names qualified by a schema in the file's string literals.
    fileprivate func tablesInTexts() -> Set<String> {
        var tables: Set<String> = []
        var isInText = false
        for line in lines where !line.drop(while: { $0 == " " }).hasPrefix("//") {
            let marks = line.matches(of: /"""/).count
            if isInText || marks > 0 {
                if isInText { tables.formUnion(Self.tables(in: line)) }
                if !marks.isMultiple(of: 2) { isInText.toggle() }
            } else {
                for literal in line.matches(of: /"(?:[^"\\]|\\.)*"/) { tables.formUnion(Self.tables(in: literal.0)) }
            }
        }
        return tables
    }

    private static func tables(in text: Substring) -> [String] {
        text.matches(of: /\b[a-z]+\.[a-z_]+\b/).map { String($0.0) }
    }
}
