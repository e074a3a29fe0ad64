import AdminQueries
import Audit
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Model
import Postgres
import Tenants

/// Deferred and dead-lettered keys, and the actions on them.
extension ConsoleAPI {
    func addDeferredKeyRoutes(to router: Router<EdgeContext>) {
        router.get("/api/deferred") { try await deferredKeys($0, $1) }
        router.get("/api/deferred/key") { try await explain($0, $1) }
        router.get("/api/deferred/outcome") { try await outcome($0, $1) }
        router.post("/api/deferred/retry") { request, context in
            try await change(request, context, isOfReadable: true) { try DeferredKeyStore.retry([$0], by: $1, on: &$2) }
        }
        router.post("/api/deferred/retry-keys") { try await retryKeys($0, $1) }
        router.post("/api/deferred/discard") { request, context in
            try await change(request, context) { try DeferredKeyStore.discard([$0], by: $1, on: &$2) }
        }
    }

    private struct Key: Codable, Sendable {
        let group: String
        let environment: Int32
        let key: String

        /// Whether PostgreSQL can store the texts, which must not contain U+0000.
        var isUsable: Bool { !(group + key).utf8.contains(0) }
        var name: DeferredKeyStore.Name { DeferredKeyStore.Name(group: group, environmentID: environment, key: key) }
    }

    /// A key with the version that the page displays.
    private struct DisplayedKey: Decodable, Sendable {
        let group: String
        let environment: Int32
        let key: String
        let version: String

        /// Whether PostgreSQL can store the texts, which must not contain U+0000.
        var isUsable: Bool { !(group + key + version).utf8.contains(0) }
        var seen: DeferredKeyStore.Seen {
            DeferredKeyStore.Seen(
                DeferredKeyStore.Name(group: group, environmentID: environment, key: key), version: version)
        }
    }

    private struct KeyRow: Encodable {
        let name: Key
        let environment: String?
        let subject: String
        let topic: String
        let partition: Int32
        let reason: String
        let state: String
        let attempts: Int32
        let deferredAt: String
        let nextAt: String
        let version: String

        init(_ row: DeferredKeyStore.Row) {
            name = Key(group: row.group, environment: row.environmentID, key: row.key)
            (environment, subject, topic, partition) = (row.environment, row.subject, row.topic, row.partition)
            (reason, state, attempts) = (row.reason, row.state.rawValue, row.attempts)
            (deferredAt, nextAt) = (row.parkedAt.description, row.nextAt.description)
            version = row.version
        }
    }

    @concurrent private func deferredKeys(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct KeyPage: Encodable {
            let keys: [KeyRow]
            let next: Key?
        }
        _ = try gate.authenticate(request, context)
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
            guard let after = try? JSONDecoder().decode(Key.self, from: Data(text.utf8)), after.isUsable else {
                throw Problem(.badRequest, detail: "The parameter 'after' is not valid.")
            }
            last = after
        }
        let rows = try await database.run { [last] connection in
            var environment: Int32?
            if let environmentName {
                guard let id = try EnvironmentStore.number(of: environmentName, on: &connection) else {
                    return [] as [KeyRow]
                }
                environment = id.rawValue
            }
            let selection = DeferredKeyStore.Selection(
                keys: key.map { [$0] } ?? [], group: group, environment: environment, reason: reason, isDead: isDead)
            return try DeferredKeyStore.page(
                selection, after: last?.name, countMax: Self.pageCountMax, on: &connection
            ).map(KeyRow.init)
        }
        return try Response.json(
            KeyPage(keys: rows, next: rows.count == Self.pageCountMax ? rows.last?.name : nil))
    }

    /// Returns a key with its explanation and its object's content. Writes an audit record.
    @concurrent private func explain(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Line: Encodable {
            let name: String
            let value: String
        }
        struct KeyDetails: Encodable {
            let key: KeyRow
            let lines: [Line]
            let payload: String?
            let position: Int64?
            let object: String?
        }
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let name = try Self.name(query)
        let details = try await database.run { connection -> KeyDetails? in
            guard let row = try DeferredKeyStore.find(name, on: &connection) else { return nil }
            let object = try DeferredKeyStore.objects([row], on: &connection)[0]
            let environment = row.environmentID == 0 ? nil : EnvironmentID(rawValue: row.environmentID)
            try principal.record(
                .payloadViewed, row.subject.isEmpty ? row.key : row.subject, in: environment,
                detail: ["group": row.group], on: &connection)
            let lines = DeferredKeyExplanation(row, object).lines.filter { $0.name != "object" }
            return KeyDetails(
                key: KeyRow(row), lines: lines.map { Line(name: $0.name, value: $0.value) },
                payload: object?.fields, position: object?.position, object: EventSubject(row.subject)?.id.text)
        }
        guard let details else { throw ConsoleResponse.notFound("deferred key") }
        return try Response.json(details)
    }

    /// Returns the outcome of a retry. Writes an audit record if it includes the object's state.
    @concurrent private func outcome(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let (name, subject) = (try Self.name(query), query["subject"] ?? "")
        let outcome = try await database.run { connection -> RetryOutcome in
            let outcome = try RetryOutcome.find(name, subject: subject, on: &connection)
            guard outcome.state == .handled, name.environmentID != 0 else { return outcome }
            try principal.record(
                .payloadViewed, subject.isEmpty ? name.key : subject,
                in: EnvironmentID(rawValue: name.environmentID), detail: ["group": name.group], on: &connection)
            return outcome
        }
        return try Response.json(outcome)
    }

    private static func name(_ query: ConsoleQuery) throws(Problem) -> DeferredKeyStore.Name {
        DeferredKeyStore.Name(
            group: try query.text("group"),
            environmentID: Int32(try query.integer("environment", in: 0...Int(Int32.max), default: 0)),
            key: try query.text("key"))
    }

    /// Applies an action to a key if it still has the displayed version.
    @concurrent private func change(
        _ request: Request, _ context: EdgeContext, isOfReadable: Bool = false,
        _ act:
            @escaping @Sendable (DeferredKeyStore.Seen, Administrator, inout Connection) throws ->
            DeferredKeyStore.Changed
    ) async throws -> Response {
        let principal = try gate.authorizeChange(request, context)
        let body = Data(try await JSONBody.read(request, bytesMax: Self.bodyBytesMax))
        guard let key = try? JSONDecoder().decode(DisplayedKey.self, from: body), key.isUsable else {
            throw Problem(
                .badRequest,
                detail: #"The body must be {"group": …, "environment": …, "key": …, "version": …}."#)
        }
        guard key.environment != 0 || !isOfReadable else {
            throw Problem(.conflict, detail: "The message is unreadable and cannot be retried. Discard it.")
        }
        let changed: DeferredKeyStore.Changed
        do {
            changed = try await database.run { try act(key.seen, principal.administrator, &$0) }
        } catch let error as DeferredKeyStore.EnvironmentInMoveError {
            throw Problem(.conflict, detail: "Nothing was changed: \(error.description).")
        }
        if changed.otherCount > 0 {
            throw Problem(.conflict, detail: "The key changed since it was displayed; nothing was done. Open it again.")
        }
        guard changed.count > 0 else { throw ConsoleResponse.notFound("deferred key") }
        return ConsoleResponse.noContent
    }

    /// Retries several keys. Those that changed since they were displayed, and unreadable messages, are unchanged.
    @concurrent private func retryKeys(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Body: Decodable { let keys: [DisplayedKey] }
        struct Outcome: Encodable {
            let count: Int
            let changedCount: Int
        }
        let principal = try gate.authorizeChange(request, context)
        let body = Data(try await JSONBody.read(request, bytesMax: Self.bodyBytesMax))
        guard let keys = try? JSONDecoder().decode(Body.self, from: body).keys, keys.allSatisfy(\.isUsable),
            keys.count <= Self.retryCountMax
        else {
            throw Problem(
                .badRequest,
                detail: """
                    The body must be {"keys": [{"group": …, "environment": …, "key": …, "version": …}, …]}, with at \
                    most \(Self.retryCountMax) keys.
                    """)
        }
        do {
            let changed = try await database.run {
                try DeferredKeyStore.retry(keys.map(\.seen), by: principal.administrator, on: &$0)
            }
            return try Response.json(Outcome(count: changed.count, changedCount: changed.otherCount))
        } catch let error as DeferredKeyStore.EnvironmentInMoveError {
            throw Problem(.conflict, detail: "Not all keys were retried: \(error.description).")
        }
    }
}
