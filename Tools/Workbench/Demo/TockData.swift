import DataFiles
import Essentials
import FoundationEssentials
import Model

/// Reads an organisation from time sheets of the US agency 18F (its program Tock; public domain).
///
/// Files: `timesheets-tock.csv`, `timesheets-tock-employees.csv`, `tree-tock-projects.csv`, each plain or `.gz`.
/// The tree is agency > accounting code > project; here it is customer > project > accounting code, in the order in
/// which an entry's author chooses. A row is one employee's hours on one project in one week; ``WeekSpread``
/// defines how it becomes entries by the day.
///
/// No row is dropped: rows of 0 hours, and rows outside an employee's dates, become entries that are expected invalid;
/// an employee without dates is always active. A row that cannot be read, or whose employee, project or accounting code
/// is missing in the other files, throws a ``Problem``.
enum TockData {
    /// An error in the files.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    /// Reads the files of a folder.
    ///
    /// - Throws: ``Problem``, ``DataFile/Problem`` or ``CSV/Problem``.
    static func load(_ folder: String) throws -> Organisation {
        let tree = try table("tree-tock-projects.csv", in: folder).map(Node.init)
        let people = try table("timesheets-tock-employees.csv", in: folder).map(person)
        let rows = try table("timesheets-tock.csv", in: folder)
        return try organisation(tree: tree, people: people, rows: rows.map(weekRow))
    }

    private struct Node {
        let id: String
        let parent: String
        let code: String
        let title: String
        let kind: String

        init(_ record: TockRecord) throws(Problem) {
            id = try record.field("id")
            parent = try record.field("parent_id")
            code = try record.field("code")
            title = try record.field("title")
            kind = try record.field("kind")
        }
    }

    private static func organisation(
        tree: [Node], people: [Organisation.Person], rows: [WeekRow]
    ) throws(Problem) -> Organisation {
        let nodes = Dictionary(tree.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        var projects: [Organisation.Project] = []
        var elements: [Organisation.Element] = []
        for project in tree where project.kind == "project" {
            guard let code = nodes[project.parent], code.kind == "accounting_code", let agency = nodes[code.parent],
                agency.kind == "agency"
            else { throw Problem(description: "project \(project.id) has no accounting code of an agency") }
            projects.append(Organisation.Project(id: project.id, name: project.title, customer: agency.id))
            let id = elementID(code: code.code, project: project.id)
            elements.append(Organisation.Element(id: id, name: "\(code.code) \(code.title)", project: project.id))
        }
        let organisation = Organisation(
            customers: tree.filter { $0.kind == "agency" }.map { Organisation.Customer(id: $0.id, name: $0.title) },
            projects: projects, elements: elements, people: people, rows: rows,
            projectTitles: Dictionary(projects.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first }))
        try checkReferences(of: rows, in: organisation)
        return organisation
    }

    private static func checkReferences(of rows: [WeekRow], in organisation: Organisation) throws(Problem) {
        let people = Set(organisation.people.map(\.id))
        let elements = Set(organisation.elements.map(\.id))
        for row in rows {
            guard people.contains(row.person) else {
                throw Problem(description: "entry \(row.id): employee \(row.person) is unknown")
            }
            guard elements.contains(row.element) else {
                throw Problem(description: "entry \(row.id): element \(row.element) is unknown")
            }
        }
    }

    private static func weekRow(_ record: TockRecord) throws(Problem) -> WeekRow {
        let (start, end) = (try record.day("period_start"), try record.day("period_end"))
        let hours = try record.field("hours")
        guard let id = Int(try record.field("entry_id")), let start, let end, start <= end,
            let hours = Hours(hours), hours.hundredths >= 0
        else { throw Problem(description: "time sheets, \(record.place): entry_id, period or hours cannot be read") }
        let project = "p" + (try record.field("project_id"))
        return WeekRow(
            id: id, person: try record.field("employee"), period: start...end, project: project,
            element: elementID(code: try record.field("accounting_code"), project: project), hours: hours)
    }

    /// An accounting code serves many projects; an element of SAP's belongs to one.
    private static func elementID(code: String, project: String) -> String { "\(code)-\(project)" }

    private static func person(_ record: TockRecord) throws(Problem) -> Organisation.Person {
        let id = try record.field("employee")
        var active: ClosedRange<Day>?
        if let start = try record.day("start_date"), let end = try record.day("end_date") {
            guard start <= end else { throw Problem(description: "employee \(id) ends before the start") }
            active = start...end
        }
        return Organisation.Person(
            id: id, name: "Employee " + id.drop { !$0.isNumber }, email: "\(id)@tock.example", active: active,
            personWorkAgreementExternalId: id, companyCode: "1010", businessPartnerUuid: StableID.uuid("person", id))
    }

    private static func table(_ name: String, in folder: String) throws -> [TockRecord] {
        let table = try CSV(try DataFile.read(name, in: folder))
        return table.rows.enumerated().map { index, fields in
            TockRecord(
                place: "\(name), record \(index + 2)",
                fields: Dictionary(zip(table.header, fields), uniquingKeysWith: { first, _ in first }))
        }
    }
}

/// One record of a table, its fields by their names.
struct TockRecord {
    let place: String
    let fields: [String: String]

    func field(_ name: String) throws(TockData.Problem) -> String {
        guard let value = fields[name] else { throw TockData.Problem(description: "\(place): no column \(name)") }
        return value
    }

    /// A date; `nil` when the field is empty.
    func day(_ name: String) throws(TockData.Problem) -> Day? {
        let text = try field(name)
        guard !text.isEmpty else { return nil }
        guard let day = Day(text) else { throw TockData.Problem(description: "\(place): '\(text)' is not a date") }
        return day
    }
}
