import AdminQueries
import Audit
import Essentials
import HTTPServer
import Hummingbird
import Logging
import Model
import Postgres
import ServiceRuntime
import Tenants

/// What the page asks for. Each answer is bounded, and long lists come by pages.
struct ConsoleAPI: Sendable {
    let gate: ConsoleGate
    let board: LookBoard
    let watch: ServiceWatch
    let database: ConsoleDatabase

    /// Rows of one page.
    static let pageCountMax = 50
    /// Longest body of a request.
    static let bodyBytesMax = 16_384
    /// Records of the audit log that one look goes through.
    static let recordCountMax = 100_000
    /// Pointers of the change log, and answers to devices, that one look goes through.
    static let pointerCountMax: Int64 = 300_000
    private static let chartCountMax = 24
    private static let chartPointCountMax = 120

    func addRoutes(to router: Router<EdgeContext>) {
        router.get("/api/session") { try session($0, $1) }
        router.get("/api/overview") { request, context in
            _ = try gate.visitor(request, context)
            return try ConsoleAnswer.json(
                Overview(board.look, watch.instances, areServicesAsked: watch.isConfigured))
        }
        router.get("/api/charts") { try charts($0, $1) }
        router.get("/api/environments") { try await environments($0, $1) }
        router.get("/api/audit") { try await acts($0, $1) }
        router.post("/api/sign-out") { try await signOut($0, $1) }
        addParkedRoutes(to: router)
        addRealmRoutes(to: router)
    }

    private func session(_ request: Request, _ context: EdgeContext) throws -> Response {
        struct Answer: Encodable {
            let email: String
            let token: String
        }
        let session = try gate.visitor(request, context).session
        return try ConsoleAnswer.json(Answer(email: session.email, token: session.token))
    }

    @concurrent private func signOut(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let visitor = try gate.actor(request, context)
        if let id = gate.cookies.session(in: request.headers) { gate.sessions.end(id) }
        // The session is over even if that cannot be told.
        let email = visitor.session.email
        try await database.run { connection in
            _ = try connection.run([visitor.administrator.audit(.consoleClosed, email, in: nil)])
        }
        var response = ConsoleAnswer.noContent
        response.headers[values: .setCookie] = [gate.cookies.endSession]
        return response
    }

    // MARK: Charts

    private struct Chart: Encodable {
        let group: String
        let topic: String
        let lag: [Float?]
        let seconds: [Float?]
        let comes: [Float?]
        let goes: [Float?]

        init(_ name: SampleHistory.Name, _ samples: [SampleHistory.Sample]) {
            func known(_ value: Float) -> Float? { value.isNaN ? nil : (value * 10).rounded() / 10 }
            (group, topic) = (name.group, name.topic)
            lag = samples.map { known($0.lag) }
            seconds = samples.map { known($0.seconds) }
            comes = samples.map { known($0.comes) }
            goes = samples.map { known($0.goes) }
        }
    }

    private func charts(_ request: Request, _ context: EdgeContext) throws -> Response {
        struct Answer: Encodable {
            let charts: [Chart]
            let total: Int
            let omitted: Int
        }
        _ = try gate.visitor(request, context)
        let query = try ConsoleQuery(request)
        let offset = try query.integer("offset", in: 0...SampleHistory.seriesCountMax, default: 0)
        let history = board.history
        let names = history.names.filter { name in
            query["filter"].map { name.topic.contains($0) || name.group.contains($0) } ?? true
        }
        let charts = names.dropFirst(offset).prefix(Self.chartCountMax).map {
            Chart($0, history.points(of: $0, countMax: Self.chartPointCountMax))
        }
        return try ConsoleAnswer.json(
            Answer(charts: charts, total: names.count, omitted: history.omittedCount))
    }

    // MARK: Environments, and acts

    @concurrent private func environments(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Answer: Encodable {
            let environments: [EnvironmentStore.Glance]
            let next: String?
        }
        _ = try gate.visitor(request, context)
        let after = try ConsoleQuery(request)["after"] ?? ""
        let found = try await database.run { connection in
            try EnvironmentStore.page(after: after, countMax: Self.pageCountMax, on: &connection)
        }
        return try ConsoleAnswer.json(
            Answer(environments: found, next: found.count == Self.pageCountMax ? found.last?.name : nil))
    }

    /// The newest records of the audit log, or those before one: as far as one look goes.
    @concurrent private func acts(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Act: Encodable {
            let time: String
            let environment: String?
            let actor: String
            let action: String
            let subject: String
            let detail: String
            let address: String
        }
        struct Answer: Encodable {
            let acts: [Act]
            /// Where to go on.
            let next: String?
            /// Older records were not looked at, though fewer were found than a page has.
            let since: String?
        }
        _ = try gate.visitor(request, context)
        let query = try ConsoleQuery(request)
        let before = try query.integer("before", in: 0...Int.max, default: .max)
        let (action, actor, subject) = (query["action"], query["actor"], query["subject"])
        let environmentName = query["environment"]
        let deadline = ContinuousClock.now + ConsoleDatabase.lookMax
        let found = try await database.run(.long) { connection in
            var selection = AuditStore.Selection(action: action, actor: actor, subjects: subject.map { [$0] })
            if let environmentName {
                guard let number = try EnvironmentStore.number(of: environmentName, on: &connection) else {
                    return AuditStore.Found()
                }
                selection.environment = number
            }
            return try AuditStore.find(
                selection, before: Int64(before), countMax: Self.pageCountMax,
                within: AuditStore.Bound(recordCountMax: Self.recordCountMax, deadline: deadline), on: &connection)
        }
        let acts = found.rows.reversed().map {
            Act(
                time: $0.time, environment: $0.environment, actor: $0.actor, action: $0.action, subject: $0.subject,
                detail: $0.detail, address: $0.address)
        }
        return try ConsoleAnswer.json(
            Answer(
                acts: acts, next: found.before.map(String.init),
                since: acts.count < Self.pageCountMax ? found.since : nil))
    }
}
