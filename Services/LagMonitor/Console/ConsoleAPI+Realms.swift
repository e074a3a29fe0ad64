import Access
import AdminQueries
import Audit
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Model
import ObjectStore
import Postgres
import Tenants

/// Realms' content, the people with access, and objects' timelines. These views contain personal data: each page
/// writes an audit record before the response.
extension ConsoleAPI {
    func addRealmRoutes(to router: Router<EdgeContext>) {
        router.get("/api/realms") { try await realms($0, $1) }
        router.get("/api/realm") { try await realm($0, $1) }
        router.get("/api/realm/objects") { try await objects($0, $1) }
        router.get("/api/realm/people") { try await people($0, $1) }
        router.get("/api/trace") { try await trace($0, $1) }
    }

    /// Runs `body` with the environment that the request names.
    func inEnvironment<Success: Sendable>(
        _ query: ConsoleQuery, _ kind: ConsoleDatabase.QueryKind = .short,
        _ body: @escaping @Sendable (EnvironmentID, inout Connection) throws -> Success
    ) async throws -> Success {
        let name = try query.text("environment")
        return try await database.run(kind) { connection in
            guard let environment = try EnvironmentStore.number(of: name, on: &connection) else {
                throw ConsoleResponse.notFound("environment")
            }
            return try body(environment, &connection)
        }
    }

    /// Returns the detail of a page's audit record, with its cursor unless it is the first page.
    private static func detail(_ facts: [String: String], after: String?) -> [String: String] {
        after.flatMap { $0.isEmpty ? nil : $0 }.map { facts.merging(["after": $0]) { first, _ in first } } ?? facts
    }

    @concurrent private func realms(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct PathPage: Encodable {
            let paths: [String]
            let next: String?
        }
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let (prefix, after) = (query["prefix"] ?? "/", query["after"] ?? "")
        let paths = try await inEnvironment(query) { environment, connection in
            try principal.record(
                .realmsListed, prefix, in: environment, detail: Self.detail([:], after: after), on: &connection)
            return try RealmContentReader.paths(
                in: environment, prefix: prefix, after: after, countMax: Self.pageCountMax, on: &connection)
        }
        return try Response.json(
            PathPage(paths: paths, next: paths.count == Self.pageCountMax ? paths.last : nil))
    }

    @concurrent private func realm(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let path = try query.realm("path")
        let counts = try await inEnvironment(query, .long) { environment, connection in
            guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                throw ConsoleResponse.notFound("realm")
            }
            try principal.record(.realmViewed, path.description, in: environment, on: &connection)
            return try reader.counts(on: &connection)
        }
        return try Response.json(counts)
    }

    private struct ObjectRow: Encodable {
        let kind: String
        let id: String
        let position: Int64
        let editPosition: Int64
        let fields: String
    }

    @concurrent private func objects(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct ObjectPage: Encodable {
            let objects: [ObjectRow]
            let next: String?
        }
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let (path, kindName, last) = (try query.realm("path"), try query.text("kind"), try query.id("after"))
        let rows = try await inEnvironment(query, .long) { environment, connection in
            guard let reader = try RealmContentReader(path, in: environment, on: &connection) else {
                throw ConsoleResponse.notFound("realm")
            }
            let catalogue = try KindCatalogue.load(environment, on: &connection)
            guard let kind = catalogue.kind(named: kindName) else { throw ConsoleResponse.notFound("kind") }
            try principal.record(
                .payloadViewed, path.description, in: environment,
                detail: Self.detail(["kind": kind.rawValue], after: last?.text), on: &connection)
            return try reader.objects(kind, id: nil, after: last, countMax: Self.pageCountMax, on: &connection).map {
                ObjectRow(
                    kind: $0.kind, id: $0.id.text, position: $0.position, editPosition: $0.editPosition,
                    fields: $0.fields)
            }
        }
        return try Response.json(
            ObjectPage(objects: rows, next: rows.count == Self.pageCountMax ? rows.last?.id : nil))
    }

    @concurrent private func people(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct Person: Encodable {
            let email: String
            let role: String
            let mayOpen: Bool
            let reason: String
            let hasLoggedIn: Bool
        }
        struct PeoplePage: Encodable {
            let people: [Person]
            let next: String?
        }
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let (path, after) = (try query.realm("path"), query["after"] ?? "")
        let page = try await inEnvironment(query, .long) { environment, connection in
            try principal.record(
                .peopleListed, path.description, in: environment, detail: Self.detail([:], after: after),
                on: &connection)
            var access = PeopleAccess(environment, realm: path)
            let page = try access.page(after: after, on: &connection)
            let people = page.map { person in
                let explanation = person.state.explanation(of: path)
                return Person(
                    email: person.email, role: person.state.role.rawValue, mayOpen: explanation.isOpen,
                    reason: explanation.reason, hasLoggedIn: person.hasLoggedIn)
            }
            return PeoplePage(people: people.filter(\.mayOpen), next: page.last?.email)
        }
        return try Response.json(page)
    }

    @concurrent private func trace(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        guard let id = try query.id("id") else {
            throw Problem(.badRequest, detail: "The parameter 'id' is not valid.")
        }
        var limits = ObjectTraceReader.Bounds()
        (limits.changesMax, limits.answersMax) = (Self.pointerCountMax, Self.pointerCountMax)
        limits.recordsMax = Self.recordCountMax
        let timelines = try await inEnvironment(query, .long) { [limits] environment, connection in
            try principal.record(
                .payloadViewed, id.text, in: environment, detail: ["view": "timeline"], on: &connection)
            var limits = limits
            limits.deadline = .now + ConsoleDatabase.queryMax
            return try ObjectTrace.load(id, in: environment, within: limits, on: &connection)
        }
        return try Response.json(timelines)
    }
}
