import Essentials
import FoundationEssentials
import Model
import NameBasedIDs

/// Service requests of the City of Los Angeles (MyLA311 open data) as master tasks, and their crews as teams.
struct ServiceRequests {
    /// What rows became.
    struct Counts {
        var teams = 0
        var completed = 0
        var open = 0
        var referred = 0
        var cancelled = 0
        var withoutTeam = 0
        var withoutCoordinates = 0
        var withoutDueDate = 0
    }

    static let columns = [
        "SRNumber", "CreatedDate", "RequestType", "Status", "AssignTo", "ServiceDate", "ClosedDate", "Address",
        "ZipCode", "Latitude", "Longitude",
    ]

    private(set) var counts = Counts()
    private var teams: Set<String> = []

    /// The namespace of ids made of numbers and names of this source, chosen once and for ever.
    private static let namespace = UUID(
        uuid: (0xC6, 0x3F, 0x1B, 0x52, 0x8D, 0x04, 0x4E, 0x7A, 0xB1, 0x59, 0x27, 0xE0, 0x6C, 0x9D, 0x35, 0xF8))

    static func taskID(_ number: String) -> UUID { UUID(name: "la311/task/\(number)", in: namespace) }
    static func teamID(_ crew: String) -> UUID { UUID(name: "la311/team/\(crew)", in: namespace) }

    /// The objects of a row: the crew's team, when it is the first row that names it, and the task. A request that was
    /// cancelled is no task.
    mutating func objects(_ row: CSVReader.Row) throws(ImportProblem) -> [ImportedObject] {
        guard row.values != nil else { throw ImportProblem("it has not one value for each column") }
        let number = row["SRNumber"]
        guard !number.isEmpty else { throw ImportProblem("'SRNumber' is empty") }
        let crew = row["AssignTo"]
        var objects: [ImportedObject] = []
        let isNew = !crew.isEmpty && !teams.contains(crew)
        if isNew { objects.append(try ImportedObject(.team, Self.teamID(crew), in: .common, Team(name: crew))) }
        let (task, outcome) = try task(row, crew)
        if let task { objects.append(try ImportedObject(.fieldTask, Self.taskID(number), in: .manager, task)) }
        // Only now: a bad row brings nothing, and is counted once.
        if isNew {
            teams.insert(crew)
            counts.teams += 1
        }
        counts[keyPath: outcome] += 1
        guard let task else { return objects }
        if task.team == nil { counts.withoutTeam += 1 }
        if task.place?.latitude == nil { counts.withoutCoordinates += 1 }
        if task.dueDate == nil { counts.withoutDueDate += 1 }
        return objects
    }

    private func task(
        _ row: CSVReader.Row, _ crew: String
    ) throws(ImportProblem) -> (FieldTask?, WritableKeyPath<Counts, Int>) {
        let outcome: WritableKeyPath<Counts, Int>
        switch row["Status"] {
        case "Closed": outcome = \.completed
        case "Open": outcome = \.open
        case "Referred Out": outcome = \.referred
        case "Cancelled": return (nil, \.cancelled)
        case let other: throw ImportProblem("'Status' is '\(other.prefix(64))'")
        }
        let isCompleted = outcome == \.completed
        let title = row["RequestType"]
        guard !title.isEmpty else { throw ImportProblem("'RequestType' is empty") }
        // Who was referred to has nothing to do with these crews.
        let hasTeam = !crew.isEmpty && outcome != \.referred
        return (
            FieldTask(
                title: title, taskDescription: row["SRNumber"], creationDate: try time("CreatedDate", row),
                dueDate: try time("ServiceDate", row), place: try place(row), isCompleted: isCompleted,
                completionDate: isCompleted ? try time("ClosedDate", row) : nil,
                team: hasTeam ? Self.teamID(crew) : nil), outcome
        )
    }

    private func time(_ name: String, _ row: CSVReader.Row) throws(ImportProblem) -> Timestamp? {
        if row[name].isEmpty { return nil }
        guard let time = PacificTime.timestamp(row[name]) else {
            throw ImportProblem("'\(name)' is '\(row[name].prefix(64))', and not MM/DD/YYYY hh:mm:ss AM or PM")
        }
        return time
    }

    /// The address, without the ZIP code that stands behind it, and the coordinates.
    private func place(_ row: CSVReader.Row) throws(ImportProblem) -> TaskPlace? {
        var coordinates: [Double?] = []
        for name in ["Latitude", "Longitude"] {
            guard row[name].isEmpty || Double(row[name]) != nil else { throw ImportProblem("'\(name)' is no number") }
            coordinates.append(Double(row[name]))
        }
        let zip = row["ZipCode"]
        var street = row["Address"]
        if !zip.isEmpty, street.hasSuffix(", \(zip)") { street.removeLast(zip.count + 2) }
        let place = TaskPlace(
            latitude: coordinates[0], longitude: coordinates[1], street: street.isEmpty ? nil : street,
            postalCode: zip.isEmpty ? nil : zip)
        return place == TaskPlace() ? nil : place
    }
}
