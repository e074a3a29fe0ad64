import AdminQueries
import Audit
import Essentials
import HTTPServer
import Hummingbird
import LagMonitoring
import Logging
import Model
import Postgres
import ServiceRuntime
import Tenants

/// The API of the console's page. Response sizes are limited; long lists are paginated.
struct ConsoleAPI: Sendable {
    let gate: ConsoleGate
    let board: SnapshotBoard
    let watch: ServiceWatch
    let database: ConsoleDatabase
    let brokers: ConsoleBrokers

    /// The number of rows per page.
    static let pageCountMax = 50
    /// The number of keys that one request retries; the page sends several requests.
    static let retryCountMax = 20
    /// The limit of a request body's size.
    static let bodyBytesMax = 16_384
    /// The limit of audit records that one request scans.
    static let recordCountMax = 100_000
    /// The limit of change log pointers, and of stored device responses, that one request scans.
    static let pointerCountMax: Int64 = 300_000
    private static let chartCountMax = 24

    func addRoutes(to router: Router<EdgeContext>) {
        router.get("/api/session") { try session($0, $1) }
        router.get("/api/overview") { request, context in
            _ = try gate.authenticate(request, context)
            return try Response.json(
                Overview(board.snapshot, watch.instances, areServicesPolled: watch.isConfigured))
        }
        router.get("/api/charts") { try charts($0, $1) }
        router.get("/api/topic") { try topic($0, $1) }
        router.get("/api/topic/messages") { try await messages($0, $1) }
        router.get("/api/back-ends") { try await backEnds($0, $1) }
        router.get("/api/environments") { try await environments($0, $1) }
        router.get("/api/audit") { try await acts($0, $1) }
        router.post("/api/sign-out") { try await signOut($0, $1) }
        addDeferredKeyRoutes(to: router)
        addRealmRoutes(to: router)
    }

    private func session(_ request: Request, _ context: EdgeContext) throws -> Response {
        struct SessionInfo: Encodable {
            let email: String
            let token: String
        }
        let session = try gate.authenticate(request, context).session
        return try Response.json(SessionInfo(email: session.email, token: session.token))
    }

    @concurrent private func signOut(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let principal = try gate.authorizeChange(request, context)
        if let id = gate.cookies.session(in: request.headers) { gate.sessions.end(id) }
        // The session ends even if the audit record cannot be written.
        let email = principal.session.email
        try await database.run { try principal.record(.consoleClosed, email, in: nil, on: &$0) }
        var response = ConsoleResponse.noContent
        response.headers[values: .setCookie] = [gate.cookies.endSession]
        return response
    }

    // MARK: Charts

    private struct Chart: Encodable {
        let group: String
        let topic: String
        /// The current values; `nil` if the last collection cycle did not return them.
        let now: Overview.Reader?
        let lag: [Int64?]
        let seconds: [Double?]
        /// Numbers of messages.
        let written: [Int64?]
        let consumed: [Int64?]

        init(_ name: SampleHistory.Name, _ points: [SampleHistory.Point], now sum: LagSum?) {
            (group, topic, now) = (name.group, name.topic, sum.map(Overview.reader))
            lag = points.map(\.lag)
            seconds = points.map { $0.seconds.map { ($0 * 10).rounded() / 10 } }
            written = points.map(\.writtenCount)
            consumed = points.map(\.consumedCount)
        }
    }

    private func charts(_ request: Request, _ context: EdgeContext) throws -> Response {
        struct ChartPage: Encodable {
            let charts: [Chart]
            /// The time of the points' beginning, and the length of a point's interval.
            let since: String
            let stepSeconds: Int64
            let total: Int
            let omitted: Int
        }
        _ = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let offset = try query.integer("offset", in: 0...SampleHistory.seriesCountMax, default: 0)
        let (history, sums) = (board.history, board.snapshot.sums)
        let hour = history.hour(until: Timestamp.now().millisecondsSinceEpoch)
        let names = history.names.filter { name in
            query["filter"].map { name.topic.contains($0) || name.group.contains($0) } ?? true
        }
        let charts = names.dropFirst(offset).prefix(Self.chartCountMax).map { name in
            let sum = sums.first { $0.group == name.group && $0.topic == name.topic }
            return Chart(name, history.points(of: name, in: hour), now: sum)
        }
        let since = Timestamp(millisecondsSinceEpoch: hour.lowerBound * SampleHistory.stepMilliseconds)
        return try Response.json(
            ChartPage(
                charts: charts, since: since.description, stepSeconds: SampleHistory.stepMilliseconds / 1_000,
                total: names.count, omitted: history.omittedCount))
    }

    // MARK: Environments and audit log

    @concurrent private func environments(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct EnvironmentPage: Encodable {
            let environments: [EnvironmentStore.Summary]
            let next: String?
            /// Live streams of devices by the environment's number; `nil` if no gateway is polled.
            let devices: [String: Double]?
        }
        _ = try gate.authenticate(request, context)
        let after = try ConsoleQuery(request)["after"] ?? ""
        let environments = try await database.run { connection in
            try EnvironmentStore.page(after: after, countMax: Self.pageCountMax, on: &connection)
        }
        return try Response.json(
            EnvironmentPage(
                environments: environments,
                next: environments.count == Self.pageCountMax ? environments.last?.name : nil, devices: watch.devices))
    }

    /// Returns the newest records of the audit log, or those before a record, within the scan limits.
    @concurrent private func acts(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct AuditPage: Encodable {
            let acts: [AuditStore.Row]
            /// The cursor of the next page.
            let next: String?
            /// The time back to which the log was scanned, if a limit was reached before the page was full.
            let since: String?
        }
        _ = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let before = try query.integer("before", in: 0...Int.max, default: .max)
        let (action, actor, subject) = (query["action"], query["actor"], query["subject"])
        let environmentName = query["environment"]
        let deadline = ContinuousClock.now + ConsoleDatabase.queryMax
        let result = try await database.run(.long) { connection in
            var selection = AuditStore.Selection(action: action, actor: actor, subjects: subject.map { [$0] })
            if let environmentName {
                guard let number = try EnvironmentStore.number(of: environmentName, on: &connection) else {
                    return AuditStore.SearchResult()
                }
                selection.environment = number
            }
            return try AuditStore.find(
                selection, before: Int64(before), countMax: Self.pageCountMax,
                within: AuditStore.Bound(recordCountMax: Self.recordCountMax, deadline: deadline), on: &connection)
        }
        let acts = Array(result.rows.reversed())
        return try Response.json(
            AuditPage(
                acts: acts, next: result.before.map(String.init),
                since: acts.count < Self.pageCountMax ? result.since : nil))
    }
}
