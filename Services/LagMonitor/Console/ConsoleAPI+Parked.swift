import AdminQueries
import Audit
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Model
import Postgres
import Tenants

/// Parked keys, and what an administrator does about them.
extension ConsoleAPI {
    func addParkedRoutes(to router: Router<EdgeContext>) {
        router.get("/api/parked") { try await parked($0, $1) }
        router.get("/api/parked/key") { try await explain($0, $1) }
        router.get("/api/parked/outcome") { try await outcome($0, $1) }
        router.post("/api/parked/retry") { request, context in
            try await change(request, context, isOfReadable: true) { try ParkedStore.retry([$0], by: $1, on: &$2) }
        }
        router.post("/api/parked/discard") { request, context in
            try await change(request, context) { try ParkedStore.discard([$0], by: $1, on: &$2) }
        }
    }

    private struct Key: Codable, Sendable {
        let group: String
        let environment: Int32
        let key: String

        /// PostgreSQL's texts have no U+0000.
        var isUsable: Bool { !(group + key).utf8.contains(0) }
        var name: ParkedStore.Name { ParkedStore.Name(group: group, environmentID: environment, key: key) }
    }

    private struct ParkedRow: Encodable {
        let name: Key
        let environment: String?
        let subject: String
        let topic: String
        let partition: Int32
        let reason: String
        let state: String
        let attempts: Int32
        let parkedAt: String
        let nextAt: String
        let version: String

        init(_ row: ParkedStore.Row) {
            name = Key(group: row.group, environment: row.environmentID, key: row.key)
            (environment, subject, topic, partition) = (row.environment, row.subject, row.topic, row.partition)
            (reason, state, attempts) = (row.reason, row.state.rawValue, row.attempts)
            (parkedAt, nextAt) = (row.parkedAt.description, row.nextAt.description)
            version = row.version
        }
    }

    @concurrent private func parked(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Answer: Encodable {
            let keys: [ParkedRow]
            let next: Key?
        }
        _ = try gate.visitor(request, context)
        let query = try ConsoleQuery(request)
        let isDead: Bool? =
            switch query["state"] {
            case "dead": true
            case "waiting": false
            default: nil
            }
        let (group, reason, key) = (query["group"], query["reason"], query["key"])
        let environmentName = query["environment"]
        var last: Key?
        if let text = query["after"] {
            guard let after = try? JSONDecoder().decode(Key.self, from: Data(text.utf8)),
                after.isUsable
            else {
                throw Problem(.badRequest, detail: "Not usable: after.")
            }
            last = after
        }
        let rows = try await database.run { [last] connection in
            var environment: Int32?
            if let environmentName {
                guard let found = try EnvironmentStore.number(of: environmentName, on: &connection) else {
                    return [] as [ParkedRow]
                }
                environment = found.rawValue
            }
            let selection = ParkedStore.Selection(
                keys: key.map { [$0] } ?? [], group: group, environment: environment, reason: reason, isDead: isDead)
            return try ParkedStore.page(
                selection, after: last?.name, countMax: Self.pageCountMax, on: &connection
            ).map(ParkedRow.init)
        }
        return try ConsoleAnswer.json(
            Answer(keys: rows, next: rows.count == Self.pageCountMax ? rows.last?.name : nil))
    }

    /// A key with all that is known of it. What it holds is looked at by somebody: the audit log tells.
    @concurrent private func explain(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Line: Encodable {
            let name: String
            let value: String
        }
        struct Answer: Encodable {
            let key: ParkedRow
            let lines: [Line]
            let payload: String?
            let position: Int64?
            let object: String?
        }
        let visitor = try gate.visitor(request, context)
        let query = try ConsoleQuery(request)
        let name = try Self.name(query)
        let found = try await database.run { connection -> Answer? in
            guard let row = try ParkedStore.find(name, on: &connection) else { return nil }
            let object = try ParkedStore.objects([row], on: &connection)[0]
            let environment = row.environmentID == 0 ? nil : EnvironmentID(rawValue: row.environmentID)
            _ = try connection.run([
                visitor.administrator.audit(
                    .payloadViewed, row.subject.isEmpty ? row.key : row.subject, in: environment,
                    detail: ["group": row.group])
            ])
            let lines = ParkedExplanation(row, object).lines.filter { $0.name != "object" }
            return Answer(
                key: ParkedRow(row), lines: lines.map { Line(name: $0.name, value: $0.value) },
                payload: object?.fields, position: object?.position, object: EventSubject(row.subject)?.id.text)
        }
        guard let found else { throw ConsoleAnswer.notFound("parked key") }
        return try ConsoleAnswer.json(found)
    }

    /// What came of a key that was tried again. How its object is then is looked at by somebody, as its payload.
    @concurrent private func outcome(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let visitor = try gate.visitor(request, context)
        let query = try ConsoleQuery(request)
        let (name, subject) = (try Self.name(query), query["subject"] ?? "")
        let found = try await database.run { connection -> RetryOutcome in
            let found = try RetryOutcome.find(name, subject: subject, on: &connection)
            guard found.state == .handled, name.environmentID != 0 else { return found }
            _ = try connection.run([
                visitor.administrator.audit(
                    .payloadViewed, subject.isEmpty ? name.key : subject,
                    in: EnvironmentID(rawValue: name.environmentID), detail: ["group": name.group])
            ])
            return found
        }
        return try ConsoleAnswer.json(found)
    }

    private static func name(_ query: ConsoleQuery) throws(Problem) -> ParkedStore.Name {
        ParkedStore.Name(
            group: try query.text("group"),
            environmentID: Int32(try query.integer("environment", in: 0...Int(Int32.max), default: 0)),
            key: try query.text("key"))
    }

    /// Changes a key as the page showed it.
    @concurrent private func change(
        _ request: Request, _ context: EdgeContext, isOfReadable: Bool = false,
        _ act: @escaping @Sendable (ParkedStore.Seen, Administrator, inout Connection) throws -> ParkedStore.Changed
    ) async throws -> Response {
        struct Version: Decodable { let version: String }
        let visitor = try gate.actor(request, context)
        let body = Data(try await JSONBody.read(request, bytesMax: Self.bodyBytesMax))
        guard let key = try? JSONDecoder().decode(Key.self, from: body), key.isUsable,
            let version = try? JSONDecoder().decode(Version.self, from: body).version, !version.utf8.contains(0)
        else {
            throw Problem(
                .badRequest,
                detail: #"The body must be {"group": …, "environment": …, "key": …, "version": …}."#)
        }
        guard key.environment != 0 || !isOfReadable else {
            throw Problem(.conflict, detail: "The message could not be read, and is not tried again: discard it.")
        }
        let changed: ParkedStore.Changed
        do {
            changed = try await database.run {
                try act(ParkedStore.Seen(key.name, version: version), visitor.administrator, &$0)
            }
        } catch let error as ParkedStore.IsMoving {
            throw Problem(.conflict, detail: "Nothing was done: \(error.description).")
        }
        if changed.otherCount > 0 {
            throw Problem(.conflict, detail: "It was parked again meanwhile, and nothing was done: look at it again.")
        }
        guard changed.count > 0 else { throw ConsoleAnswer.notFound("parked key") }
        return ConsoleAnswer.noContent
    }
}
