import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// Executes a ``FieldworkPlan`` on people's devices in order of time. Managers create teams and tasks, and end some
/// tasks. An assignee completes a task once the device has it, and at times reports a position. Calendars are edited;
/// all recipients receive an edit before the next one begins.
struct FieldworkShift: Sendable {
    let plan: FieldworkPlan
    /// By the number of the person.
    let devices: [Device]
    /// The times without a connection, by number of the person.
    let absences: [Author.Absence?]
    /// The state before this run: a second run continues.
    let before: EnvironmentSnapshot
    let masters: [UUID: JSONObject]
    let tally: FieldworkTally

    init(_ plan: FieldworkPlan, _ fleet: Fleet, before: EnvironmentSnapshot, tally: FieldworkTally) {
        self.plan = plan
        devices = fleet.members.map(\.device)
        absences = fleet.members.map(\.absence)
        self.before = before
        masters = before.masters
        self.tally = tally
    }

    /// Mutations that a manager leaves waiting at a time.
    private static let waitingMax = 500
    /// The interval of tasks with a location at which a person reports a position.
    private static let positionEvery = 8
    private static let calendarsParallelMax = 16

    func work() async throws {
        for device in working { _ = await device.takeUpdates() }
        try await Device.whileRunning(working) {
            try await makeTeams()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for manager in Set(plan.tasks.map(\.manager)) { group.addTask { try await manage(manager) } }
                for (doer, tasks) in completions() { group.addTask { try await complete(tasks, by: doer) } }
                group.addTask { try await editCalendars() }
                try await group.waitForAll()
            }
            for device in working { try await device.until { $0.queue.count == 0 } }
        }
    }

    private var people: [UUID] { plan.people }
    private var working: [Device] { plan.participants.map { devices[$0] } }

    /// The number of responses since the begin, and the rejected mutations, a line each.
    func answers() async -> (count: Int, refused: [String]) {
        var (count, refused) = (0, [String]())
        for device in working {
            let answers = await device.takeUpdates().answers
            count += answers.count
            for answer in answers {
                guard case .rejected(let code, let detail) = answer.outcome else { continue }
                let mutation = answer.mutation
                let subject = "\(mutation.kind.rawValue) \(mutation.id.text) in \(answer.realm)"
                refused.append("\(device.person.email): \(subject): \(code): \(detail)")
            }
        }
        return (count, refused.sorted())
    }

    // MARK: Managers

    private func makeTeams() async throws {
        guard let head = plan.head else { return }
        var mutations: [Mutation] = []
        for crew in plan.crews {
            mutations.append(try .put(.team, crew.id, Team(name: crew.name)))
            for member in crew.members {
                let id = Membership.id(of: people[member], in: crew.id)
                mutations.append(try .put(.membership, id, Membership(person: people[member], team: crew.id)))
            }
        }
        // A new manager's device may not have the role yet.
        try await devices[head].until { $0.copy.contents[.manager] != nil }
        try await devices[head].enqueue(mutations, in: .common)
        try await devices[head].until { $0.queue.count == 0 }
    }

    private enum Act { case make, end }

    /// A manager's actions on tasks, in order of time.
    private func acts(of manager: Int) -> [(task: FieldworkPlan.TaskLife, act: Act)] {
        var acts: [(time: Timestamp, task: FieldworkPlan.TaskLife, act: Act)] = []
        for task in plan.tasks where task.manager == manager {
            acts.append((task.created, task, .make))
            switch task.end {
            case .cancelled, .referred: if let ended = task.ended { acts.append((ended, task, .end)) }
            case .open, .completed: break
            }
        }
        // The order is stable: a task that ends at once is made before.
        return acts.sorted { $0.time < $1.time }.map { ($0.task, $0.act) }
    }

    private func manage(_ manager: Int) async throws {
        let device = devices[manager]
        try await device.until { $0.copy.contents[.manager] != nil }
        for (task, act) in acts(of: manager) {
            let object = ObjectID(kind: .fieldTask, id: task.id)
            let isKnown = before.contains(object, in: .manager) || masters[task.id] != nil
            switch (act, task.end) {
            case (.make, let end):
                if !isKnown {
                    try await enqueue(.put(.fieldTask, task.id, task.definition(for: people)), of: device)
                    tally.moved(from: nil, to: .made)
                }
                if end != .open { continue }
            case (.end, .cancelled):
                if !isKnown || masters[task.id] != nil {
                    try await enqueue(.delete(.fieldTask, task.id), of: device)
                }
            case (.end, _):
                if !isKnown || masters[task.id]?.id(of: "team") != nil {
                    try await enqueue(.patch(.fieldTask, task.id, #"{"team":null}"#), of: device)
                }
            }
            tally.finish(1)
        }
    }

    private func enqueue(_ mutation: Mutation, of device: Device) async throws {
        try await device.until { $0.queue.count < Self.waitingMax }
        try await device.enqueue([mutation], in: .manager)
    }

    // MARK: Assignees

    private func completions() -> [Int: [FieldworkPlan.TaskLife]] {
        var tasks: [Int: [FieldworkPlan.TaskLife]] = [:]
        for task in plan.tasks {
            if case .completed(_, let doer) = task.end { tasks[doer, default: []].append(task) }
        }
        return tasks.mapValues { $0.sorted { ($0.ended ?? .begin, $0.id) < ($1.ended ?? .begin, $1.id) } }
    }

    /// Whether an assignee still has to complete a task. Changes by others between two runs are left to the comparison.
    private func isLeft(_ task: FieldworkPlan.TaskLife) -> Bool {
        guard before.contains(ObjectID(kind: .fieldTask, id: task.id), in: .manager) || masters[task.id] != nil else {
            return true
        }
        guard let master = masters[task.id], !master.isTrue("isCompleted") else { return false }
        return master.id(of: "team") == task.definition.team
    }

    private func complete(_ tasks: [FieldworkPlan.TaskLife], by doer: Int) async throws {
        let device = devices[doer]
        let left = tasks.filter(isLeft)
        tally.finish(tasks.count - left.count)
        var (locationCount, reconnection) = (0, Task<Void, any Error>?.none)
        for (index, task) in left.enumerated() {
            if let absence = absences[doer], reconnection == nil, absence.isDue(at: index, of: left.count) {
                reconnection = await device.leave(for: absence.duration)
            }
            let realm = realm(of: task, doer)
            let object = ObjectID(kind: .fieldTask, id: task.id)
            try await device.until { $0.copy[realm, object] != nil && $0.queue.count < Self.waitingMax }
            guard case .completed(let time, _) = task.end else { continue }
            let progress =
                #"{"isCompleted":true,"completionDate":"\#(time)","completedBy":"\#(people[doer].text)"}"#
            try await device.enqueue([.patch(.fieldTask, task.id, progress)], in: realm)
            tally.moved(from: nil, to: .completed)
            tally.finish(1)
            guard let latitude = task.definition.place?.latitude, let longitude = task.definition.place?.longitude
            else { continue }
            locationCount += 1
            guard locationCount % Self.positionEvery == 1 else { continue }
            let location = Location(latitude: latitude, longitude: longitude, accuracy: 10, timestamp: time)
            try await device.enqueue([try .put(.location, people[doer], location)])
            tally.moved(from: nil, to: .positions)
        }
        try await reconnection?.value
    }

    /// The realm of a task on the assignee's device: a manager works on the master if no other realm has it.
    private func realm(of task: FieldworkPlan.TaskLife, _ doer: Int) -> RealmPath {
        if let team = task.definition.team { return .team(team) }
        return task.assignee == doer ? devices[doer].realm : .manager
    }

    // MARK: Calendars

    private func editCalendars() async throws {
        try await concurrentMap(plan.calendars, parallelMax: Self.calendarsParallelMax) { calendar in
            let desk = CalendarDesk(calendar: calendar, devices: devices, people: people)
            try await desk.work(before: before) { isMade in
                if isMade { tally.moved(from: nil, to: .edits) }
                tally.finish(1)
            }
        }
    }
}
