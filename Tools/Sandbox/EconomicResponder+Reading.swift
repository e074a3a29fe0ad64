import Essentials
import Hummingbird
import Model

extension EconomicResponder {
    func read(_ path: String, _ number: Int?, _ request: Request) -> Response {
        if let number {
            system.count("reads")
            return system.record(number).map { .json(.ok, EconomicResponder.json($0)) } ?? .economicNotFound
        }
        let parameters = Parameters(request.uri.query ?? "")
        let first = parameters["Cursor"].map { Int($0) ?? -1 } ?? 0
        guard first >= 0 else { return .economic(.badRequest, "BadRequest", "The cursor is not known.") }
        let master = system.master
        switch path {
        case "timeentries":
            return entries(parameters["Filter"], from: first)
        case "projects":
            system.count("projectListings")
            let unreadable = Int(system.switches.faults.unreadableChoice)
            return listing(master.projects, from: first) { project in
                EconomicResponder.json(project).unreadable(
                    if: project.number == unreadable, id: "number", number: project.number)
            }
        case "activities":
            return listing(master.activities, from: first) { EconomicResponder.json($0) }
        case "project-activities":
            return listing(master.links, from: first) { EconomicResponder.json($0) }
        case "employees":
            return listing(master.employees, from: first) {
                .present([
                    ("number", .number($0.number)), ("name", .string($0.name)),
                    ("email", $0.email.map { .string($0) } ?? .null), ("access", .bool(!($0.isBarred ?? false))),
                ])
            }
        case "project-employees":
            return listing(master.employees, from: first) {
                .present([
                    ("number", .number($0.number)), ("name", .string($0.name)),
                    ("isBarred", .bool($0.isBarred ?? false)),
                ])
            }
        default:
            return .economicNotFound
        }
    }

    /// Query parameters; their names are not case-sensitive.
    private struct Parameters {
        private var values: [String: String] = [:]

        init(_ query: String) {
            for part in query.split(separator: "&") {
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2, let value = String(pair[1]).removingURLPercentEncoding() else { continue }
                values[pair[0].lowercased()] = value
            }
        }

        subscript(name: String) -> String? { values[name.lowercased()] }
    }

    private func entries(_ text: String?, from first: Int) -> Response {
        system.count("listings")
        var filter: EconomicFilter?
        if let text {
            guard let parsed = try? EconomicFilter(text, properties: EconomicRecord.filterable) else {
                return .economic(.badRequest, "BadRequest", "The filter is not understood.", property: "filter")
            }
            filter = parsed
        }
        let (rows, next) = system.page(filter, from: first)
        let employee = Int(system.switches.faults.unreadableRowsOf)
        let items = rows.map { record in
            EconomicResponder.json(record).unreadable(
                if: record.employeeNumber == employee, id: "number", number: record.number)
        }
        system.count("unreadableRows", rows.count { $0.employeeNumber == employee })
        return self.page(items, next)
    }

    private func listing<Row>(_ rows: [Int: Row], from first: Int, _ json: (Row) -> JSONText) -> Response {
        let numbers = rows.keys.filter { $0 >= first }.sorted()
        let countMax = system.switches.pageItemsMax
        let page = numbers.prefix(countMax).compactMap { rows[$0].map(json) }
        return self.page(page, numbers.count > countMax ? numbers[countMax] : nil)
    }

    private func page(_ items: [JSONText], _ next: Int?) -> Response {
        let next = next ?? (system.switches.pagesAreCircular ? 1 : nil)
        return .json(.ok, .present([("cursor", next.map { .string(String($0)) } ?? .null), ("items", .array(items))]))
    }

    // MARK: Rows

    static func json(_ record: EconomicRecord) -> JSONText {
        .present([
            ("number", .number(record.number)), ("employeeNumber", .number(record.employeeNumber)),
            ("projectNumber", .number(record.projectNumber)), ("activityNumber", .number(record.activityNumber)),
            ("date", .string(record.dateTime)), ("numberOfHours", .decimal(record.numberOfHours)),
            ("text", .string(record.text)), ("isApproved", .bool(record.isApproved)),
            ("isReconciled", .bool(record.isReconciled)), ("lastUpdated", .string(record.lastUpdated)),
            ("objectVersion", .string(record.objectVersion)),
        ])
    }

    private static func json(_ project: EconomicOrganisation.Project) -> JSONText {
        .present([
            ("number", .number(project.number)), ("name", .string(project.name)),
            ("isMainProject", .bool(project.isMainProject ?? false)),
            ("mainProjectNumber", project.mainProjectNumber.map { .number($0) } ?? .null),
            ("isBarred", .bool(project.isBarred ?? false)), ("isClosed", .bool(project.isClosed ?? false)),
        ])
    }

    private static func json(_ activity: EconomicOrganisation.Activity) -> JSONText {
        .present([
            ("number", .number(activity.number)), ("name", .string(activity.name)),
            ("isAccessible", .bool(activity.isAccessible ?? false)),
            ("hideInSearch", .bool(activity.hideInSearch ?? false)),
        ])
    }

    private static func json(_ link: EconomicOrganisation.ProjectActivity) -> JSONText {
        .present([
            ("number", .number(link.number)), ("projectNumber", .number(link.projectNumber)),
            ("activityNumber", .number(link.activityNumber)), ("completed", .bool(link.completed ?? false)),
        ])
    }
}

extension JSONText {
    /// Without what is null or false: "Booleans should only be expected to be represented in responses when true."
    static func present(_ fields: [(String, JSONText)]) -> JSONText {
        .object(
            fields.filter {
                switch $0.1 {
                case .null, .bool(false): false
                case .bool, .number, .decimal, .string, .array, .object, .raw: true
                }
            })
    }
}
