import Essentials
import Model

/// Makes tasks and calendars of the same shape as the real ones, for a demo without data.
enum GeneratedFieldwork {
    private static let districts = ["North", "South", "East", "West", "Harbour", "Valley", "Centre", "Hills"]
    private static let works = ["Bulky items", "Graffiti", "Street light", "Fallen tree", "Pothole", "Illegal dumping"]
    private static let reasons = ["Inspection", "Toolbox talk", "Hand-over", "Planning", "Training"]
    private static let tasksPerPerson = 6
    private static let editCount = 4
    /// 2024-01-08, a Monday, at 8 in the morning.
    private static let begin: Int64 = 1_704_700_800_000
    private static let minute: Int64 = 60_000

    /// The same for the same numbers, and other ids for others: of 100 tasks, about 3 are cancelled, 2 lose their team,
    /// 5 stay open, and 10 are of a person without a team.
    static func make(people count: Int, seed: UInt64) -> FieldworkPlan {
        var random = SplitMix64(seed: seed)
        let workers = FieldworkPlan.workers(among: count)
        let names = districts.prefix(max(1, min(districts.count, workers.count / 2)))
        let crews = FieldworkPlan.crews(names.map { (StableID.uuid("team", $0), $0) }, among: count)
        return FieldworkPlan(
            crews: crews, tasks: tasks(of: count, crews, seed: seed, using: &random),
            calendars: (0..<count).map { calendar(of: $0, among: count, seed: seed, using: &random) },
            head: FieldworkPlan.managers(among: count).first, outline: DemoCoast.geoJSON)
    }

    private static func tasks(
        of count: Int, _ crews: [FieldworkPlan.Crew], seed: UInt64, using random: inout SplitMix64
    ) -> [FieldworkPlan.TaskLife] {
        let (managers, workers) = (FieldworkPlan.managers(among: count), FieldworkPlan.workers(among: count))
        return (0..<count * tasksPerPerson).map { index in
            let made = Timestamp(millisecondsSinceEpoch: begin + Int64(index) * minute)
            let ended = Timestamp(
                millisecondsSinceEpoch: begin + (Int64(index) + .random(in: 60...4_000, using: &random)) * minute)
            let crew = random.happens(90) ? crews[index % crews.count] : nil
            let doers = crew?.members ?? workers
            let doer = doers[Int.random(in: 0..<doers.count, using: &random)]
            let task = FieldTask(
                title: works[index % works.count], taskDescription: "No. \(index + 1)", creationDate: made,
                dueDate: random.happens(95)
                    ? ended.adding(.seconds(60 * Int64.random(in: -300...3_000, using: &random))) : nil,
                place: random.happens(80) ? place(using: &random) : nil, team: crew?.id)
            var end = FieldworkPlan.TaskLife.End.completed(ended, by: doer)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<3: end = .cancelled(ended)
            case 3..<5: if crew != nil { end = .referred(ended) }
            case 5..<10: end = .open
            default: break
            }
            return FieldworkPlan.TaskLife(
                id: StableID.uuid("task", "\(seed)", "\(count)", "\(index)"), definition: task,
                assignee: crew == nil ? doer : nil,
                manager: managers[index % managers.count], end: end)
        }
    }

    private static func place(using random: inout SplitMix64) -> TaskLocation {
        TaskLocation(
            latitude: 55 + Double(Int.random(in: 0..<10_000, using: &random)) / 10_000,
            longitude: 12 + Double(Int.random(in: 0..<10_000, using: &random)) / 10_000,
            street: "Strandvejen \(Int.random(in: 1...400, using: &random))", countryCode: "DK")
    }

    private static func calendar(
        of owner: Int, among count: Int, seed: UInt64, using random: inout SplitMix64
    ) -> FieldworkPlan.Calendar {
        var edits: FieldworkPlan.Calendar = []
        let name = "calendar-\(seed)-\(count)-\(owner)"
        for number in 0..<editCount {
            let others = Set((0..<2).map { _ in Int.random(in: 0..<count, using: &random) }).subtracting([owner])
            let items = (0..<Int.random(in: 1...3, using: &random)).map { index in
                let kept = edits.last?.items ?? []
                let when = begin + .random(in: 0...10_000, using: &random) * minute
                return FieldworkPlan.CalendarItem(
                    id: index < kept.count ? kept[index].id : StableID.uuid(name, "\(number)", "\(index)"),
                    appointment: Appointment(
                        when: Timestamp(millisecondsSinceEpoch: when), durationMinutes: 15 * (index + 1),
                        why: reasons[Int.random(in: 0..<reasons.count, using: &random)]))
            }
            edits.append(FieldworkPlan.CalendarEdit(owner: owner, recipients: others.sorted(), items: items))
        }
        return edits
    }
}
