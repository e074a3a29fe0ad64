import DataFiles
import Essentials
import Model

/// Reads an organisation from time sheets of the US agency 18F (its program Tock; public domain).
///
/// Files: `timesheets-tock.csv`, `timesheets-tock-employees.csv`, `tree-tock-projects.csv`, each plain or `.gz`.
/// The tree is agency > accounting code > project; here it is customer > project > accounting code, in the order in
/// which an entry's author chooses. A row is one employee's hours on one project in one week; ``WeekSpread``
/// defines how it becomes entries by the day.
///
/// No row is dropped: rows of 0 hours, and rows outside an employee's dates, become entries that are expected invalid;
/// an employee without dates is always active. From the day after the last row all employees are employed again, so
/// that entries of today are accepted. A row that cannot be read, or whose employee, project or accounting code is
/// missing in the other files, throws a ``PublicDataProblem``.
enum TockData {
    /// Reads the files of a folder.
    ///
    /// - Throws: ``PublicDataProblem``, ``DataFile/Problem`` or ``CSV/Problem``.
    static func load(_ folder: String) throws -> Organisation {
        let tree = try table("tree-tock-projects.csv", ["id", "parent_id", "code", "title", "kind"], in: folder)
        let people = try table("timesheets-tock-employees.csv", ["employee", "start_date", "end_date"], in: folder)
        let columns = ["entry_id", "employee", "period_start", "period_end", "project_id", "accounting_code", "hours"]
        let rows = try table("timesheets-tock.csv", columns, in: folder)
        return try organisation(tree: tree, people: people.map(person), rows: rows.map(weekRow))
    }

    private static func organisation(
        tree: [Record], people: [Organisation.Person], rows: [WeekRow]
    ) throws(PublicDataProblem) -> Organisation {
        let nodes = Dictionary(tree.map { ($0["id"], $0) }, uniquingKeysWith: { first, _ in first })
        var projects: [Organisation.Project] = []
        var elements: [Organisation.Element] = []
        for project in tree where project["kind"] == "project" {
            let id = project["id"]
            guard let code = nodes[project["parent_id"]], code["kind"] == "accounting_code",
                let agency = nodes[code["parent_id"]], agency["kind"] == "agency"
            else { throw PublicDataProblem("project \(id) has no accounting code of an agency") }
            projects.append(Organisation.Project(id: id, name: project["title"], customer: agency["id"]))
            elements.append(
                Organisation.Element(
                    id: elementID(code: code["code"], project: id), name: "\(code["code"]) \(code["title"])",
                    project: id))
        }
        try checkReferences(of: rows, to: people, elements)
        let rehiredOn = rows.map(\.period.upperBound).max()?.adding(days: 1)
        let employees = people.map { person in
            var person = person
            person.rehiredOn = rehiredOn
            return person
        }
        return Organisation(
            customers: tree.filter { $0["kind"] == "agency" }
                .map { Organisation.Customer(id: $0["id"], name: $0["title"]) },
            projects: projects, elements: elements, people: employees, rows: rows)
    }

    private static func checkReferences(
        of rows: [WeekRow], to people: [Organisation.Person], _ elements: [Organisation.Element]
    ) throws(PublicDataProblem) {
        let (people, elements) = (Set(people.map(\.id)), Set(elements.map(\.id)))
        for row in rows {
            guard people.contains(row.person) else {
                throw PublicDataProblem("entry \(row.id): employee \(row.person) is unknown")
            }
            guard elements.contains(row.element) else {
                throw PublicDataProblem("entry \(row.id): element \(row.element) is unknown")
            }
        }
    }

    private static func weekRow(_ record: Record) throws(PublicDataProblem) -> WeekRow {
        guard let start = try record.day("period_start"), let end = try record.day("period_end"), start <= end,
            let id = Int(record["entry_id"]), let hours = Hours(record["hours"]), hours.hundredths >= 0
        else { throw PublicDataProblem("\(record.source): entry_id, period or hours cannot be read") }
        let project = "p" + record["project_id"]
        return WeekRow(
            id: id, person: record["employee"], period: start...end, project: project,
            element: elementID(code: record["accounting_code"], project: project), hours: hours)
    }

    /// An accounting code serves many projects; an element of SAP's belongs to one.
    private static func elementID(code: String, project: String) -> String { "\(code)-\(project)" }

    private static func person(_ record: Record) throws(PublicDataProblem) -> Organisation.Person {
        let id = record["employee"]
        var active: ClosedRange<Day>?
        if let start = try record.day("start_date"), let end = try record.day("end_date") {
            guard start <= end else { throw PublicDataProblem("employee \(id) ends before the start") }
            active = start...end
        }
        return Organisation.Person(
            id: id, name: "Employee " + id.drop { !$0.isNumber }, email: "\(id)@tock.example", active: active,
            personWorkAgreementExternalId: id, companyCode: "1010", businessPartnerUuid: StableID.uuid("person", id))
    }

    private static func table(_ name: String, _ columns: [String], in folder: String) throws -> [Record] {
        let table = try CSV(try DataFile.read(name, in: folder))
        if let missing = columns.first(where: { !table.header.contains($0) }) {
            throw PublicDataProblem("\(name): no column \(missing)")
        }
        return table.rows.enumerated().map { index, fields in
            Record(
                source: "\(name), record \(index + 2)",
                fields: Dictionary(zip(table.header, fields), uniquingKeysWith: { first, _ in first }))
        }
    }

    /// One record of a table that has all columns.
    private struct Record {
        let source: String
        let fields: [String: String]

        subscript(name: String) -> String { fields[name] ?? "" }

        /// A date; `nil` when the field is empty.
        func day(_ name: String) throws(PublicDataProblem) -> Day? {
            if self[name].isEmpty { return nil }
            guard let day = Day(self[name]) else {
                throw PublicDataProblem("\(source): '\(self[name])' is not a date")
            }
            return day
        }
    }
}
