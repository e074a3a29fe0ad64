import ArgumentParser
import BackendConnections
import Compass
import Essentials
import HTTPClient
import Model
import Postgres
import Secrets
import Tenants

extension DefectsCommand {
    /// `fieldpost environment defects check`: tests an environment's Compass server.
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Test the connection to an environment's Compass server.",
            discussion: """
                Logs in, reads a sample, and tests the assumptions about a Compass server \
                (docs/integrators/back-ends/compass.md): it creates a temporary query, reads one page as usual and two \
                pages of two rows, and deletes the query. Without an account it only calls the server, and counts \
                people's own valid logins. Exits with status 1 if a check fails.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            var connection = try database.connect()
            let id = try EnvironmentStore.find(name, on: &connection)
            guard let tracker = try DefectTracker.load(id, on: &connection) else {
                throw CommandFailure("\(name) has no defects: environment defects add")
            }
            var logins: [String: Int64] = [:]
            if tracker.account == nil, try OwnDefectLogin.areKept(on: &connection) {
                let rows = try connection.run(OwnDefectLogin.counts(in: id)).decode(String.self, Int64.self)
                logins = Dictionary(rows.map { ($0.0, $0.1) }) { first, _ in first }
            }
            let check = DefectCheck(tracker: tracker, logins: logins, secrets: try SecretOptions.box())
            try EnvironmentFinding.show(await check.findings(), output)
        }
    }
}

/// Tests a Compass server, with timeouts, until the first failure.
struct DefectCheck {
    let tracker: DefectTracker
    /// Without an account: the number of people's own logins by status.
    let logins: [String: Int64]
    let secrets: SecretBox

    private static let callMax = Duration.seconds(10)

    /// The first failure, which ends the test.
    private struct Failure: Error { let finding: EnvironmentFinding }

    func findings() async throws -> [EnvironmentFinding] {
        let http = Client()
        defer { http.shutDown() }
        guard tracker.account != nil else { return try await withoutAccount(http) }
        let (usual, compass): (CompassClient, CompassClient)
        do {
            usual = try tracker.client(http, secrets: secrets, callMax: Self.callMax)
            // Reads two pages of two rows.
            compass = try tracker.client(http, secrets: secrets, callMax: Self.callMax) { settings in
                (settings.pageRowsMax, settings.pagesMax) = (2, 2)
            }
        } catch {
            return [.init(what: "account", works: false, detail: "\(error)")]
        }
        var findings: [EnvironmentFinding] = []
        do {
            findings.append(try await step("server") { try await server(compass) })
            findings.append(
                try await step("account") {
                    try await compass.logIn()
                    return tracker.account?.user ?? "a personal access token"
                })
            findings.append(try await step("record type") { try await recordType(compass) })
            findings.append(try await step("queries") { try await queries(compass, usual) })
            try? await compass.logOff()
            try? await usual.logOff()
        } catch let failure as Failure {
            findings.append(failure.finding)
        }
        return findings
    }

    /// The checks that need no login.
    private func withoutAccount(_ http: Client) async throws -> [EnvironmentFinding] {
        var settings = tracker.settings
        settings.callMax = Self.callMax
        // The server lists its repositories without a login.
        let compass = CompassClient(settings, as: .personalAccessToken(""), client: http)
        let names = DefectAccount.Status.allCases.map(\.rawValue)
        let counts = names.map { "\(logins[$0] ?? 0) \($0)" }.joined(separator: ", ")
        let people = EnvironmentFinding(
            what: "people's own logins", works: true,
            detail: "\(counts); \(logins["none"] ?? 0) without a login")
        do {
            return [try await step("server") { try await server(compass) }, people]
        } catch let failure as Failure {
            return [failure.finding, people]
        }
    }

    private func step(_ what: String, _ body: () async throws -> String) async throws -> EnvironmentFinding {
        do {
            return .init(what: what, works: true, detail: try await body())
        } catch {
            throw Failure(finding: .init(what: what, works: false, detail: "\(error)"))
        }
    }

    private func server(_ compass: CompassClient) async throws -> String {
        let repositories = try await compass.repositories(withDatabases: true)
        guard let own = repositories.first(where: { $0.name == tracker.repository }) else {
            let names = repositories.map(\.name).joined(separator: ", ")
            throw CommandFailure("repository \(tracker.repository) does not exist; available: \(names)")
        }
        // A server that does not list its databases checks the name at login.
        guard own.databases.isEmpty || own.databases.contains(tracker.database) else {
            throw CommandFailure(
                "\(own.name) has no database \(tracker.database); available: \(own.databases.joined(separator: ", "))")
        }
        return "\(tracker.serverURL): \(tracker.repository)/\(tracker.database)"
    }

    private func recordType(_ compass: CompassClient) async throws -> String {
        let types = try await compass.database().recordTypes
        guard types.contains(where: { $0.lowercased() == tracker.recordType.lowercased() }) else {
            throw CommandFailure(
                "record type \(tracker.recordType) does not exist; available: \(types.joined(separator: ", "))")
        }
        let type = try await compass.recordType()
        return "\(type.name): \(type.fields.count) fields, \(type.actions.count) actions"
    }

    /// Creates a query of history, and verifies the assumptions about pages, columns and times.
    private func queries(_ compass: CompassClient, _ usual: CompassClient) async throws -> String {
        guard let folder = try await compass.folder(at: [Folder.personalQueries]) else {
            throw CommandFailure("the account has no folder \(Folder.personalQueries)")
        }
        let query = try await compass.create(
            QueryDefinition(
                name: TemporaryQuery.name(at: Timestamp.now()), folder: folder.id, recordType: tracker.recordType,
                columns: ["id", "dbid", "history.action_name", "history.action_timestamp"].map { .init($0) },
                filter: QueryFilter()))
        do {
            let text = try await pages(of: query, compass)
            try await lastPage(of: query, usual)
            try await compass.deleteQuery(query.id ?? "")
            return text
        } catch {
            try? await compass.deleteQuery(query.id ?? "")
            throw error
        }
    }

    private func pages(of query: QueryDefinition, _ compass: CompassClient) async throws -> String {
        let set = try await compass.run(query)
        let first = try await compass.page(1, of: set)
        var rows = first.rows
        if rows.count > 2 { throw CommandFailure("a page of 2 rows has \(rows.count): the page size is ignored") }
        var unreadable = first.unreadable
        if !first.isLast {
            let second = try await compass.page(2, of: set, after: first)
            rows += second.rows
            unreadable += second.unreadable
        }
        if let row = unreadable.first { throw CommandFailure("a row cannot be read: \(row)") }
        for row in rows {
            let time = row["history.action_timestamp"] ?? ""
            if CompassTime(time) == nil { throw CommandFailure("'\(time)' is not a time as yyyy-MM-dd HH:mm:ss") }
            guard let id = row["id"], try await compass.record(id) != nil else {
                throw CommandFailure("a row names the record '\(row["id"] ?? "")', which does not exist")
            }
        }
        return rows.isEmpty ? "work; no defects found" : "work: \(rows.count) rows in pages of 2"
    }
    /// Verifies that no page follows one that is shorter than requested.
    private func lastPage(of query: QueryDefinition, _ compass: CompassClient) async throws {
        let set = try await compass.run(query)
        let first = try await compass.page(1, of: set)
        guard first.isLast, try await !compass.page(2, of: set, after: first).rows.isEmpty else { return }
        throw CommandFailure(
            "a page of \(set.pageRowsMax) rows has \(first.rows.count), and another page follows: the server's limit "
                + "is smaller")
    }
}
