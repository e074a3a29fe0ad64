import Hummingbird

extension EconomicEmulator {
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
            guard let parsed = try? Filter(economic: text, properties: EconomicRecord.filterable) else {
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
