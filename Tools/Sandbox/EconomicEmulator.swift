import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// An emulator of e-conomic's Projects API v20, after the vendor's OpenAPI document (https://apis.e-conomic.com,
/// v20.0.0) and its list of error codes.
struct EconomicEmulator: Emulator {
    private static let root = "/api/v20.0.0/"

    let system: EconomicSystem
    /// The accepted `X-AppSecretToken` and `X-AgreementGrantToken`.
    private let tokens: (app: String, grant: String)

    /// - Parameter state: The file that keeps the state over a restart; `nil` keeps it in memory only.
    init(
        state: String? = nil, appSecretToken: String = "sandbox-app", agreementGrantToken: String = "sandbox-grant"
    ) throws {
        system = try EconomicSystem(journalPath: state)
        tokens = (appSecretToken, agreementGrantToken)
    }

    var handlers: [any RemovableChannelHandler] { [SkewedDate { [system] in system.switches.dateSkewSeconds }] }

    func serve(_ request: Request, _ context: EdgeContext) async throws -> Response {
        guard request.headers[.appSecretToken] == tokens.app, request.headers[.agreementGrantToken] == tokens.grant,
            !system.switches.isRevoked
        else {
            system.count("unauthorized")
            return Self.failure(.unauthorized, "The tokens are not accepted.")
        }
        if let failure = try await injectedFailure(of: request) { return failure }
        guard request.uri.path.hasPrefix(Self.root) else { return Self.notFound }
        let path = String(request.uri.path.dropFirst(Self.root.count))
        let number = path.hasPrefix("timeentries/") ? Int(path.dropFirst("timeentries/".count)) : nil
        switch (request.method, path) {
        case (.get, _):
            return read(path, number, request)
        case (.post, "timeentries"), (.put, "timeentries"):
            let body = try await request.data()
            guard let entry = try? JSONDecoder().decode(EconomicEntryRequest.self, from: body) else {
                return Self.failure(.badRequest, "The body is not a time entry.")
            }
            return try await write(context) { [system] isTrial in
                if request.method == .put {
                    system.count("updates")
                    try system.withState { try $0.update(entry, isTrial: isTrial) }
                    return Response(status: .noContent)
                }
                system.count("creates")
                let number = try system.withState { try $0.create(entry, isTrial: isTrial) }
                return .json(.created, ["number": .number(number)])
            }
        case (.delete, _):
            guard let number else { return Self.notFound }
            return try await write(context) { [system] isTrial in
                system.count("deletes")
                try system.withState { try $0.delete(number, isTrial: isTrial) }
                return Response(status: .noContent)
            }
        default:
            return Self.failure(.methodNotAllowed, "The method is not allowed.")
        }
    }

    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response {
        failure(status, status.reasonPhrase.filter { $0 != " " }, message)
    }

    /// The vendor's error body, without null fields.
    static func failure(
        _ status: HTTPResponse.Status, _ code: String, _ message: String, property: String? = nil
    ) -> Response {
        .json(
            status,
            .present([
                "errorCode": .string(code), "message": .string(message), "developerHint": "This is an emulator.",
                "logId": .string(UUID().uuidString), "logTimeUtc": "2024-01-01T00:00:00", "property": .text(property),
            ]))
    }

    // MARK: Reading

    func read(_ path: String, _ number: Int?, _ request: Request) -> Response {
        if let number {
            system.count("reads")
            return system.withState { $0.record(number) }.map { .json(.ok, Self.json($0)) } ?? Self.notFound
        }
        // The names of parameters are not case-sensitive.
        func parameter(_ name: String) -> String? { request.parameters.last { $0.name.lowercased() == name }?.value }
        let first = parameter("cursor").map { Int($0) ?? -1 } ?? 0
        guard first >= 0 else { return Self.failure(.badRequest, "The cursor is not known.") }
        let master = system.withState { $0.master }
        switch path {
        case "timeentries":
            return entries(parameter("filter"), from: first)
        case "projects":
            system.count("projectListings")
            let unreadable = Int(system.switches.faults.unreadableChoice)
            return listing(master.projects, from: first) { project in
                Self.json(project).unreadable(
                    if: project.number == unreadable, id: "number", number: project.number)
            }
        case "activities":
            return listing(master.activities, from: first) {
                [
                    "number": .number($0.number), "name": .string($0.name),
                    "isAccessible": .bool($0.isAccessible ?? false), "hideInSearch": .bool($0.hideInSearch ?? false),
                ]
            }
        case "project-activities":
            return listing(master.links, from: first) {
                [
                    "number": .number($0.number), "projectNumber": .number($0.projectNumber),
                    "activityNumber": .number($0.activityNumber), "completed": .bool($0.completed ?? false),
                ]
            }
        case "employees":
            return listing(master.employees, from: first) {
                [
                    "number": .number($0.number), "name": .string($0.name), "email": .text($0.email),
                    "access": .bool(!($0.isBarred ?? false)),
                ]
            }
        case "project-employees":
            return listing(master.employees, from: first) {
                [
                    "number": .number($0.number), "name": .string($0.name), "isBarred": .bool($0.isBarred ?? false),
                ]
            }
        default:
            return Self.notFound
        }
    }

    private func entries(_ text: String?, from first: Int) -> Response {
        system.count("listings")
        var filter: Filter?
        if let text {
            guard let parsed = try? Filter(economic: text, isProperty: { EconomicRecord.filterable[$0] != nil }) else {
                return Self.failure(.badRequest, "BadRequest", "The filter is not understood.", property: "filter")
            }
            filter = parsed
        }
        let (rows, next) = system.withState { $0.page(filter, from: first) }
        let employee = Int(system.switches.faults.unreadableRowsOf)
        let items = rows.map { record in
            Self.json(record).unreadable(
                if: record.employeeNumber == employee, id: "number", number: record.number)
        }
        system.count("unreadableRows", rows.count { $0.employeeNumber == employee })
        return self.page(items, next)
    }

    private func listing<Row>(_ rows: [Int: Row], from first: Int, _ json: (Row) -> JSON) -> Response {
        let numbers = rows.keys.filter { $0 >= first }.sorted()
        let countMax = system.switches.pageItemsMax
        let items = numbers.prefix(countMax).compactMap { rows[$0].map { JSON.present(json($0)) } }
        return page(items, numbers.count > countMax ? numbers[countMax] : nil)
    }

    private func page(_ items: [JSON], _ next: Int?) -> Response {
        let next = next ?? (system.switches.pagesAreCircular ? 1 : nil)
        return .json(.ok, .present(["cursor": .text(next.map { String($0) }), "items": .array(items)]))
    }

    private static func json(_ record: EconomicRecord) -> JSON {
        .present([
            "number": .number(record.number), "employeeNumber": .number(record.employeeNumber),
            "projectNumber": .number(record.projectNumber), "activityNumber": .number(record.activityNumber),
            "date": .string(record.dateTime), "numberOfHours": .decimal(record.numberOfHours),
            "text": .string(record.text), "isApproved": .bool(record.isApproved),
            "isReconciled": .bool(record.isReconciled), "lastUpdated": .string(record.lastUpdated),
            "objectVersion": .string(record.objectVersion),
        ])
    }

    private static func json(_ project: EconomicOrganisation.Project) -> JSON {
        .present([
            "number": .number(project.number), "name": .string(project.name),
            "isMainProject": .bool(project.isMainProject ?? false),
            "mainProjectNumber": project.mainProjectNumber.map { .number($0) } ?? .null,
            "isBarred": .bool(project.isBarred ?? false), "isClosed": .bool(project.isClosed ?? false),
        ])
    }

    // MARK: Control

    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/entries"):
            return try await change(request) { (change: Change) in
                guard let number = system.withState({ $0.save(change.number, change.apply) }) else {
                    throw EmulatorError("there is no time entry \(change.number ?? 0)")
                }
                return ["number": .number(number)]
            }
        case (.get, "/sandbox/recorded"):
            let first = request.after + 1
            let records = system.withState { state in
                state.records.numbers(ofEmployee: nil, from: first).compactMap { state.records[$0] }
            }
            return lines(records) { Self.line(of: $0) }
        default: return nil
        }
    }

    /// Another user's change of a time entry: its approval, reconciliation, values or deletion. Without a number an
    /// entry is added. Absent fields are unchanged.
    private struct Change: Decodable {
        let number: Int?
        let employeeNumber: Int?
        let projectNumber: Int?
        let activityNumber: Int?
        let date: Day?
        let numberOfHours: Double?
        let text: String?
        let isApproved: Bool?
        let isReconciled: Bool?
        let isDeleted: Bool?

        func apply(_ record: inout EconomicRecord) {
            // An entry keeps its employee, who is part of an index.
            if let employeeNumber, number == nil { record.employeeNumber = employeeNumber }
            if let projectNumber { record.projectNumber = projectNumber }
            if let activityNumber { record.activityNumber = activityNumber }
            if let date { record.date = date }
            if let numberOfHours { record.numberOfHours = numberOfHours }
            if let text { record.text = text }
            if let isApproved { record.isApproved = isApproved }
            if let isReconciled { record.isReconciled = isReconciled }
            if let isDeleted { record.isDeleted = isDeleted }
        }
    }

    private static func line(of record: EconomicRecord) -> JSON {
        [
            "number": .number(record.number), "employeeNumber": .number(record.employeeNumber),
            "projectNumber": .number(record.projectNumber), "activityNumber": .number(record.activityNumber),
            "date": .string(record.date.description), "numberOfHours": .decimal(record.numberOfHours),
            "text": .string(record.text), "isApproved": .bool(record.isApproved),
            "isReconciled": .bool(record.isReconciled), "isDeleted": .bool(record.isDeleted),
            "version": .number(record.version),
        ]
    }
}

/// Replaces the `Date` of every response by that of a wrong clock; the server sets the right one after the responder.
private final class SkewedDate: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Seconds by which the clock is ahead; behind, if negative.
    private let skewSeconds: @Sendable () -> Int

    init(skewSeconds: @escaping @Sendable () -> Int) { self.skewSeconds = skewSeconds }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let skew = skewSeconds()
        guard skew != 0, case .head(var head) = unwrapOutboundIn(data) else {
            return context.write(data, promise: promise)
        }
        let now = Timestamp.now().millisecondsSinceEpoch
        head.headerFields[.date] = Timestamp(millisecondsSinceEpoch: now + Int64(skew) * 1_000).httpText
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}

extension JSON {
    /// An object without what is null or false: "Booleans should only be expected to be represented in responses when
    /// true."
    static func present(_ object: JSON) -> JSON {
        guard case .object(let fields) = object else { return object }
        return .object(
            fields.filter {
                switch $0.1 {
                case .null, .bool(false): false
                case .bool, .number, .decimal, .string, .array, .object, .raw: true
                }
            })
    }
}

extension EconomicRules.Refusal: EmulatorRefusal {
    var response: Response {
        EconomicEmulator.failure(HTTPResponse.Status(code: status), code, message, property: property)
    }
}

extension HTTPField.Name {
    fileprivate static let appSecretToken = custom("X-AppSecretToken")
    fileprivate static let agreementGrantToken = custom("X-AgreementGrantToken")
}
