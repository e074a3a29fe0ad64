import ImportSources
import Model

/// Converts service requests to master tasks, and their crews to teams.
struct ServiceRequests {
    /// The numbers of rows by result.
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

    private(set) var counts = Counts()
    private var teams: Set<String> = []

    /// Returns the objects of a row: the crew's team, if it is new, and the task. A cancelled request has no task.
    mutating func objects(_ row: CSVReader.Row) throws(ImportProblem) -> [ImportedObject] {
        guard row.values != nil else { throw ImportProblem("the number of values is not that of the columns") }
        let request = try ServiceRequest { row[$0] }
        let crew = request.crew
        var objects: [ImportedObject] = []
        let isNew = !crew.isEmpty && !teams.contains(crew)
        if isNew {
            objects.append(try ImportedObject(.team, ServiceRequest.teamID(crew), in: .common, Team(name: crew)))
        }
        if request.outcome != .cancelled {
            let id = ServiceRequest.taskID(request.number)
            objects.append(try ImportedObject(.fieldTask, id, in: .manager, request.task))
        }
        // An invalid row adds nothing, and is counted once.
        if isNew {
            teams.insert(crew)
            counts.teams += 1
        }
        count(request)
        return objects
    }

    private mutating func count(_ request: ServiceRequest) {
        switch request.outcome {
        case .completed: counts.completed += 1
        case .open: counts.open += 1
        case .referred: counts.referred += 1
        case .cancelled:
            counts.cancelled += 1
            return
        }
        if request.task.team == nil { counts.withoutTeam += 1 }
        if request.task.place?.latitude == nil { counts.withoutCoordinates += 1 }
        if request.task.dueDate == nil { counts.withoutDueDate += 1 }
    }
}
