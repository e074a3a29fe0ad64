import DataFiles
import Essentials
import Model

/// Reads the lives of real tasks and calendars, and gives them to an organisation's people: the service requests of the
/// City of Los Angeles, and every edit of OpenStack's meetings.
///
/// Files: `tasks-la311-2017.csv` and `calendar-openstack-meetings-history.jsonl`, each plain or `.gz`. A row or a line
/// that cannot be read is a ``PublicDataProblem``: it is never left out silently.
enum FieldworkData {
    private static let requests = "tasks-la311-2017.csv"
    private static let meetings = "calendar-openstack-meetings-history.jsonl"

    /// Reads the files of a folder.
    ///
    /// - Returns: `nil` when it has neither of them.
    static func load(_ folder: String, people count: Int) throws -> FieldworkPlan? {
        let isThere = [requests, meetings].map { DataFile.isThere($0, in: folder) }
        guard isThere.contains(true) else { return nil }
        var plan = FieldworkPlan(crews: [], tasks: [], calendars: [])
        if isThere[0] {
            let table = try naming(requests) { try CSV(DataFile.read(requests, in: folder)) }
            (plan.crews, plan.tasks) = try tasks(table, people: count)
            plan.head = FieldworkPlan.managers(among: count).first
        }
        if isThere[1] { plan.calendars = try calendars(Array(DataFile.read(meetings, in: folder)), people: count) }
        return plan
    }

    /// Prefixes an error with the name of the file that is read.
    private static func naming<Value>(_ file: String, _ read: () throws -> Value) throws(PublicDataProblem) -> Value {
        do { return try read() } catch { throw PublicDataProblem("\(file): \(error)") }
    }

    // MARK: Tasks

    static func tasks(
        _ table: CSV, people count: Int
    ) throws -> (crews: [FieldworkPlan.Crew], tasks: [FieldworkPlan.TaskLife]) {
        var rows = try naming(requests) { try ServiceRequest.rows(of: table) }
        rows.sort {
            ($0.task.creationDate ?? .begin, $0.number) < ($1.task.creationDate ?? .begin, $1.number)
        }
        let names = Set(rows.map(\.crew)).subtracting([""]).sorted()
        let crews = FieldworkPlan.crews(names.map { (ServiceRequest.teamID($0), $0) }, among: count)
        let members = Dictionary(uniqueKeysWithValues: crews.map { ($0.name, $0.members) })
        let managers = FieldworkPlan.managers(among: count)
        let tasks = rows.enumerated().map { index, row in
            let manager = managers[index % managers.count]
            let doers = members[row.crew] ?? [manager]
            return life(row, index, manager: manager, doer: doers[index % doers.count])
        }
        return (crews, tasks)
    }

    private static func life(
        _ row: ServiceRequest, _ index: Int, manager: Int, doer: Int
    ) -> FieldworkPlan.TaskLife {
        var definition = row.task
        (definition.isCompleted, definition.completionDate) = (false, nil)
        definition.team = row.crew.isEmpty ? nil : ServiceRequest.teamID(row.crew)
        let ended = row.closed ?? definition.creationDate ?? .begin
        let end: FieldworkPlan.TaskLife.End =
            switch row.outcome {
            case .completed: .completed(ended, by: doer)
            case .open: .open
            case .referred: .referred(ended)
            case .cancelled: .cancelled(ended)
            }
        return FieldworkPlan.TaskLife(
            id: ServiceRequest.taskID(row.number), definition: definition, manager: manager, end: end)
    }

    // MARK: Calendars

    static func calendars(_ bytes: [UInt8], people count: Int) throws -> [FieldworkPlan.Calendar] {
        let source = MeetingCalendar(domain: "meetings.example")
        var calendars: [FieldworkPlan.Calendar] = []
        var places: [String: Int] = [:]
        var people: [String: Int] = [:]
        try naming(meetings) {
            try MeetingCalendar.forEachLine(of: bytes) { index, line in
                let names = source.chairs(of: line).map(\.email)
                for name in names where people[name] == nil { people[name] = people.count }
                let chairs = names.compactMap { people[$0] }.map { $0 % count }
                if places[line.file] == nil {
                    places[line.file] = calendars.count
                    calendars.append([])
                }
                let place = places[line.file] ?? 0
                let last = calendars[place].last
                calendars[place].append(
                    edit(chairs, try source.items(of: line), in: line.file, number: index, after: last))
            }
        }
        return calendars
    }

    /// An item keeps its id while its index among the meeting's times and its owner stay.
    private static func edit(
        _ chairs: [Int], _ items: [FieldworkPlan.CalendarItem], in file: String, number: Int,
        after last: FieldworkPlan.CalendarEdit?
    ) -> FieldworkPlan.CalendarEdit {
        // Without a chair, or when it is deleted, it stays with whom it was.
        let owner = chairs.first ?? last?.owner ?? 0
        let kept = last?.owner == owner ? last?.items ?? [] : []
        return FieldworkPlan.CalendarEdit(
            owner: owner, recipients: Set(chairs).subtracting([owner]).sorted(),
            items: items.enumerated().map { index, item in
                let id = index < kept.count ? kept[index].id : StableID.uuid("meeting", file, "\(number)", "\(index)")
                return FieldworkPlan.CalendarItem(id: id, appointment: item.appointment)
            })
    }
}
